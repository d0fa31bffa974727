//! One adapter per test framework.
