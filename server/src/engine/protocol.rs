//! What goes over the socket: one request a connection, as JSON frames with their length in front. Closing the connection
//! cancels the request.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tokio::net::UnixStream;
use tokio_util::codec::{Framed, LengthDelimitedCodec};

use crate::model::{Event, ModelError, Request, Response};

/// Longest frame, in bytes.
const LONGEST: usize = 64 << 20;

/// From the engine.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Answer {
    /// On the way.
    Event(Event),
    /// The end.
    Done(Response),
    /// The end, without an answer.
    Failed(Failure),
}

/// [`ModelError`] for the wire.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Failure {
    Cancelled,
    TooLong { tokens: u32, window: u32 },
    Unusable(String),
    Memory(String),
    Unavailable(String),
    Request(String),
}

impl From<ModelError> for Failure {
    fn from(error: ModelError) -> Self {
        match error {
            ModelError::Cancelled => Self::Cancelled,
            ModelError::TooLong { tokens, window } => Self::TooLong { tokens, window },
            ModelError::Unusable(text) => Self::Unusable(text),
            ModelError::Memory(text) => Self::Memory(text),
            ModelError::Unavailable(text) => Self::Unavailable(text),
            ModelError::Request(text) => Self::Request(text),
        }
    }
}

impl From<Failure> for ModelError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Cancelled => Self::Cancelled,
            Failure::TooLong { tokens, window } => Self::TooLong { tokens, window },
            Failure::Unusable(text) => Self::Unusable(text),
            Failure::Memory(text) => Self::Memory(text),
            Failure::Unavailable(text) => Self::Unavailable(text),
            Failure::Request(text) => Self::Request(text),
        }
    }
}

/// A connection in frames.
pub(super) type Frames = Framed<UnixStream, LengthDelimitedCodec>;

pub(super) fn frames(stream: UnixStream) -> Frames {
    LengthDelimitedCodec::builder().max_frame_length(LONGEST).new_framed(stream)
}

pub(super) fn encode(value: &impl Serialize) -> std::io::Result<Bytes> {
    serde_json::to_vec(value).map(Into::into).map_err(std::io::Error::other)
}

pub(super) fn decode_request(frame: &[u8]) -> std::io::Result<Request> {
    serde_json::from_slice(frame).map_err(std::io::Error::other)
}

pub(super) fn decode_answer(frame: &[u8]) -> std::io::Result<Answer> {
    serde_json::from_slice(frame).map_err(std::io::Error::other)
}
