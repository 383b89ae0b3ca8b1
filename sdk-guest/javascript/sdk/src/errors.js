// Why a provider did not answer. The kind decides how the failure is told to the caller; the text is shown to people as
// the provider's words, and should say what to do.

/** Of one of the kinds below. */
export class ProviderError extends Error {
  /** @param {string} kind @param {string} message @param {ErrorOptions} [options] */
  constructor(kind, message, options) {
    super(message, options);
    this.kind = kind;
    this.name = new.target.name;
  }
}

/** There is no such resource, or none that this caller may know of. */
export class NotFound extends ProviderError {
  constructor(message = "not found", options) {
    super("not-found", message, options);
  }
}

/** The reference, cursor or argument is malformed; the text says how. */
export class Invalid extends ProviderError {
  constructor(message, options) {
    super("invalid", message, options);
  }
}

/** Refused, or something that it needs was not granted; the text says what. */
export class Denied extends ProviderError {
  constructor(message, options) {
    super("denied", message, options);
  }
}

/** Something that it depends on is down or busy; the same call may succeed later. */
export class Unavailable extends ProviderError {
  constructor(message, options) {
    super("unavailable", message, options);
  }
}

/** Anything else. What else is thrown becomes this. */
export class Failed extends ProviderError {
  constructor(message, options) {
    super("failed", message, options);
  }
}
