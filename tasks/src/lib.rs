//! What the user's code is, and whether a change to it is good: snapshots, workspaces, the sandbox,
//! test runners and grading. It knows no model and writes nothing into the user's tree.
//!
//! The way of a fix through this crate: [`snapshot::Snapshot`] (what the user sees now) →
//! [`workspace::Workspace`] (a writable copy) → [`sandbox::Sandbox`] (runs one command with a promise)
//! → [`runner`] (per-test results) → [`grade`] (the verdict, the only maker of a
//! [`grade::VerifiedPatch`]).

pub mod grade;
pub mod patch;
pub mod runner;
pub mod sandbox;
pub mod snapshot;
pub mod syntax;
pub mod workspace;
