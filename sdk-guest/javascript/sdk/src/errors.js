// The errors of a provider. The kind decides how the host reports the failure; the text is shown to people as
// the provider's words, and should say what to do.

/** The base class of the errors below. */
export class ProviderError extends Error {
  /** @param {string} kind @param {string} message @param {ErrorOptions} [options] */
  constructor(kind, message, options) {
    super(message, options);
    this.kind = kind;
    this.name = new.target.name;
  }
}

/** The resource does not exist, or this caller must not know of it. */
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

/** The provider refuses, or a grant is missing; the text says which. */
export class Denied extends ProviderError {
  constructor(message, options) {
    super("denied", message, options);
  }
}

/** A backend is down or busy; the same call may succeed later. */
export class Unavailable extends ProviderError {
  constructor(message, options) {
    super("unavailable", message, options);
  }
}

/** Any other failure. Every other thrown value becomes this error. */
export class Failed extends ProviderError {
  constructor(message, options) {
    super("failed", message, options);
  }
}
