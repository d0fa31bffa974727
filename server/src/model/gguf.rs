//! What a GGUF file says about itself, read without llama.cpp, which would end the process on a bad file.
//!
//! Source: the GGUF specification (magic, version, counts, key-value pairs, tensor descriptions, aligned data). Counts in the file are
//! believed only as far as the file is long.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Read, Seek};
use std::path::Path;

/// Longest string that is kept (chat templates are the longest of interest), in bytes.
const LONGEST: u64 = 1 << 20;

/// A scalar or string value; arrays are passed over, but their length is kept.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Any integer.
    Integer(i128),
    /// Any float.
    Float(f64),
    /// A truth value.
    Bool(bool),
    /// Text.
    Text(String),
    /// An array of this many elements.
    Array(u64),
}

/// The head of a GGUF file.
#[derive(Clone, Debug)]
pub struct Gguf {
    /// Key-value pairs.
    pub values: BTreeMap<String, Value>,
    /// Length of the file in bytes.
    pub length: u64,
    /// Length that the tensor descriptions imply, in bytes.
    pub needed: u64,
}

impl Gguf {
    /// Reads the head of `path`.
    ///
    /// # Errors
    /// One clause that says what is wrong with the file.
    pub fn read(path: &Path) -> Result<Self, String> {
        let file = File::open(path).map_err(|error| error.to_string())?;
        let length = file.metadata().map_err(|error| error.to_string())?.len();
        let mut reader = Reader { source: BufReader::new(file), left: length };
        reader.head(length).map_err(|error| match error {
            Fault::Truncated => "it is cut off in its head".to_owned(),
            Fault::Other(what) => what,
        })
    }

    /// Text of a key.
    pub fn text(&self, key: &str) -> Option<&str> {
        match self.values.get(key)? {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Number of a key.
    pub fn number(&self, key: &str) -> Option<u64> {
        match self.values.get(key)? {
            Value::Integer(number) => u64::try_from(*number).ok(),
            _ => None,
        }
    }

    /// Number of a key of the model's own architecture (`block_count` for `qwen2.block_count`).
    pub fn own_number(&self, key: &str) -> Option<u64> {
        self.number(&format!("{}.{key}", self.text("general.architecture")?))
    }
}

enum Fault {
    Truncated,
    Other(String),
}

struct Reader {
    source: BufReader<File>,
    left: u64,
}

impl Reader {
    fn head(&mut self, length: u64) -> Result<Gguf, Fault> {
        if self.bytes::<4>().is_ok_and(|magic| magic != *b"GGUF") || length < 4 {
            return Err(Fault::Other("it is no GGUF file".into()));
        }
        let version = u32::from_le_bytes(self.bytes()?);
        if !(2..=3).contains(&version) {
            return Err(Fault::Other(format!("its GGUF version {version} is not known")));
        }
        let (tensors, pairs) = (self.number()?, self.number()?);
        let mut values = BTreeMap::new();
        for _ in 0..pairs {
            let key = self.string()?;
            let kind = u32::from_le_bytes(self.bytes()?);
            values.insert(key, self.value(kind)?);
        }
        let mut end = 0;
        for _ in 0..tensors {
            end = end.max(self.tensor()?);
        }
        let alignment = match values.get("general.alignment") {
            Some(Value::Integer(number)) if *number > 0 => *number as u64,
            _ => 32,
        };
        let here = self.source.stream_position().map_err(|error| Fault::Other(error.to_string()))?;
        let needed = here.next_multiple_of(alignment).saturating_add(end);
        Ok(Gguf { values, length, needed })
    }

    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let mut bytes = [0; N];
        self.source.read_exact(&mut bytes).map_err(|_| Fault::Truncated)?;
        self.left = self.left.saturating_sub(N as u64);
        Ok(bytes)
    }

    fn number(&mut self) -> Result<u64, Fault> {
        Ok(u64::from_le_bytes(self.bytes()?))
    }

    fn skip(&mut self, count: u64) -> Result<(), Fault> {
        if count > self.left {
            return Err(Fault::Truncated);
        }
        self.left -= count;
        let count = i64::try_from(count).map_err(|_| Fault::Truncated)?;
        self.source.seek_relative(count).map_err(|_| Fault::Truncated)
    }

    fn string(&mut self) -> Result<String, Fault> {
        let length = self.number()?;
        if length > self.left {
            return Err(Fault::Truncated);
        }
        if length > LONGEST {
            self.skip(length)?;
            return Ok(String::new());
        }
        let mut bytes = vec![0; length as usize];
        self.source.read_exact(&mut bytes).map_err(|_| Fault::Truncated)?;
        self.left -= length;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn value(&mut self, kind: u32) -> Result<Value, Fault> {
        Ok(match kind {
            0 => Value::Integer(self.bytes::<1>()?[0].into()),
            1 => Value::Integer(i8::from_le_bytes(self.bytes()?).into()),
            2 => Value::Integer(u16::from_le_bytes(self.bytes()?).into()),
            3 => Value::Integer(i16::from_le_bytes(self.bytes()?).into()),
            4 => Value::Integer(u32::from_le_bytes(self.bytes()?).into()),
            5 => Value::Integer(i32::from_le_bytes(self.bytes()?).into()),
            6 => Value::Float(f32::from_le_bytes(self.bytes()?).into()),
            7 => Value::Bool(self.bytes::<1>()?[0] != 0),
            8 => Value::Text(self.string()?),
            9 => self.array()?,
            10 => Value::Integer(self.number()?.into()),
            11 => Value::Integer(i64::from_le_bytes(self.bytes()?).into()),
            12 => Value::Float(f64::from_le_bytes(self.bytes()?)),
            _ => return Err(Fault::Other("it holds a value of an unknown kind".into())),
        })
    }

    fn array(&mut self) -> Result<Value, Fault> {
        let kind = u32::from_le_bytes(self.bytes()?);
        let count = self.number()?;
        let size = match kind {
            0 | 1 | 7 => 1,
            2 | 3 => 2,
            4..=6 => 4,
            10..=12 => 8,
            8 => {
                for _ in 0..count {
                    let length = self.number()?;
                    self.skip(length)?;
                }
                return Ok(Value::Array(count));
            }
            _ => return Err(Fault::Other("it holds an array of an unknown kind".into())),
        };
        self.skip(count.checked_mul(size).ok_or(Fault::Truncated)?)?;
        Ok(Value::Array(count))
    }

    /// Where a tensor's data ends, relative to the start of all data.
    fn tensor(&mut self) -> Result<u64, Fault> {
        self.string()?;
        let dimensions = u32::from_le_bytes(self.bytes()?);
        let mut elements = 1_u64;
        for _ in 0..dimensions.min(8) {
            elements = elements.saturating_mul(self.number()?);
        }
        let kind = u32::from_le_bytes(self.bytes()?);
        let offset = self.number()?;
        let (block, bytes) = block_size(kind).unwrap_or((1, 0));
        Ok(offset.saturating_add((elements / block).saturating_mul(bytes)))
    }
}

/// Elements and bytes of one block of a tensor type (ggml's numbering); `None` for types that we do not know.
fn block_size(kind: u32) -> Option<(u64, u64)> {
    Some(match kind {
        0 => (1, 4),
        1 | 30 => (1, 2),
        2 => (32, 18),
        3 => (32, 20),
        6 => (32, 22),
        7 => (32, 24),
        8 => (32, 34),
        10 => (256, 84),
        11 => (256, 110),
        12 => (256, 144),
        13 => (256, 176),
        14 => (256, 210),
        20 => (32, 18),
        23 => (256, 136),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn file(content: &[u8]) -> std::io::Result<tempfile::NamedTempFile> {
        let mut file = tempfile::NamedTempFile::new()?;
        file.write_all(content)?;
        Ok(file)
    }

    fn small() -> Vec<u8> {
        let mut bytes = b"GGUF".to_vec();
        bytes.extend(3_u32.to_le_bytes());
        bytes.extend(1_u64.to_le_bytes());
        bytes.extend(2_u64.to_le_bytes());
        for (key, value) in [("general.architecture", "qwen2"), ("tokenizer.chat_template", "{{ x }}")] {
            bytes.extend((key.len() as u64).to_le_bytes());
            bytes.extend(key.as_bytes());
            bytes.extend(8_u32.to_le_bytes());
            bytes.extend((value.len() as u64).to_le_bytes());
            bytes.extend(value.as_bytes());
        }
        bytes.extend(1_u64.to_le_bytes());
        bytes.extend(b"t");
        bytes.extend(1_u32.to_le_bytes());
        bytes.extend(64_u64.to_le_bytes());
        bytes.extend(8_u32.to_le_bytes());
        bytes.extend(0_u64.to_le_bytes());
        bytes
    }

    #[test]
    fn values_and_the_needed_length_are_read() -> Result<(), Box<dyn std::error::Error>> {
        let gguf = Gguf::read(file(&small())?.path())?;
        assert_eq!(gguf.text("tokenizer.chat_template"), Some("{{ x }}"));
        assert_eq!(gguf.needed, (small().len() as u64).next_multiple_of(32) + 68);
        Ok(())
    }

    #[test]
    fn every_cut_of_a_head_is_an_error_and_nothing_worse() -> Result<(), Box<dyn std::error::Error>> {
        let whole = small();
        for end in 0..whole.len() {
            assert!(Gguf::read(file(&whole[..end])?.path()).is_err(), "{end}");
        }
        let mut huge = whole;
        huge[16..24].copy_from_slice(&u64::MAX.to_le_bytes());
        assert!(Gguf::read(file(&huge)?.path()).is_err());
        assert_eq!(Gguf::read(file(b"hello world")?.path()).err().as_deref(), Some("it is no GGUF file"));
        Ok(())
    }
}
