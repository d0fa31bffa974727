//! The process that owns llama.cpp (`tadpole engine`), and the client that the rest of the program talks to it with.
//!
//! One process per person and model serves every editor window and every rollout, so that the model is in memory once. It is
//! a process of its own because a failed assertion in llama.cpp ends its process. [`client`] starts it on
//! demand; [`process`] listens on a private socket; one thread ([`worker`]) decodes, by the plan of [`scheduler`], which
//! knows no tensor; [`sampler`] chooses tokens. It ends when nobody has asked for anything for a while.

pub mod client;
pub mod kernels;
mod llama;
pub mod memory;
pub mod process;
mod protocol;
mod sampler;
mod scheduler;
mod text;
mod worker;
