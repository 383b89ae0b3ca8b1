/** The value of a setting, or undefined if the operator did not set it. */
export function get(name: string): string | undefined;
