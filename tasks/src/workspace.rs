//! Pooled, resettable copies of a snapshot that model-written commands and tests may change.
