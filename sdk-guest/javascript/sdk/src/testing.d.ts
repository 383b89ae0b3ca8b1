/** Grants a directory of this machine under a guest path. */
export function grant(guestPath: string, hostPath: string): void;
/** Removes all grants. */
export function revokeAll(): void;
