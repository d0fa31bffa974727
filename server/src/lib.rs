//! The process-level half of Tadpole: the language server, the command line, the engine that owns
//! llama.cpp, the models and the agent. Dependencies point one way: `tasks ◀ trainer ◀ server`.

pub mod agent;
pub mod cli;
pub mod config;
pub mod engine;
pub mod fix;
pub mod home;
pub mod lsp;
pub mod model;
pub mod trust;
