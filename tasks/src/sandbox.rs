//! Running one command with a promise.
