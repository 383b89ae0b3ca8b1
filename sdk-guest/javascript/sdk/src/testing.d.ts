/** Grants a directory of this machine under a guest path. */
export function grant(guestPath: string, hostPath: string): void;
/** Takes all grants back. */
export function revokeAll(): void;
