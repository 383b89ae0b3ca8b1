/** The value of a setting, or undefined when the operator gave none. */
export function get(name: string): string | undefined;
