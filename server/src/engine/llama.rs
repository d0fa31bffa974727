//! llama.cpp behind a few calls: the model, one context, adapters. All of it is used from one thread.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use llama_cpp_2::context::LlamaContext;
use llama_cpp_2::context::params::LlamaContextParams;
use llama_cpp_2::llama_backend::LlamaBackend;
use llama_cpp_2::model::params::LlamaModelParams;
use llama_cpp_2::model::{LlamaLoraAdapter, LlamaModel};
use llama_cpp_2::token::LlamaToken;

use super::kernels;
use crate::model::ModelError;

/// Sequences that can live at once.
pub(super) const SEQUENCES: u32 = 64;

/// Tokens that one call decodes at most.
pub(super) const BATCH: u32 = 512;

/// Starts llama.cpp with the CPU kernels that fit this machine best.
pub(super) fn backend(kernels_file: &Path) -> Result<LlamaBackend, ModelError> {
    llama_cpp_2::send_logs_to_tracing(llama_cpp_2::LogOptions::default());
    kernels::load(kernels_file)?;
    LlamaBackend::init().map_err(|error| ModelError::Unavailable(format!("llama.cpp cannot start: {error}")))
}

/// Loads a model; `progress` is told 0 to 1.
pub(super) fn load(
    backend: &LlamaBackend,
    path: &Path,
    progress: impl Fn(f32) + 'static,
) -> Result<LlamaModel, ModelError> {
    let parameters = LlamaModelParams::default().with_progress_callback(move |fraction| {
        progress(fraction);
        true
    });
    LlamaModel::load_from_file(backend, path, &parameters).map_err(|error| {
        ModelError::Unusable(format!(
            "{} cannot be loaded by llama.cpp ({error}); its architecture may be unknown to this version, or the file is damaged",
            path.display()
        ))
    })
}

/// The context that all sequences live in; `window` tokens together.
pub(super) fn context<'a>(
    backend: &LlamaBackend,
    model: &'a LlamaModel,
    window: u32,
) -> Result<LlamaContext<'a>, ModelError> {
    let threads = std::thread::available_parallelism().map_or(1, |it| i32::try_from(it.get()).unwrap_or(1));
    let parameters = LlamaContextParams::default()
        .with_n_ctx(NonZeroU32::new(window))
        .with_n_batch(BATCH)
        .with_n_ubatch(BATCH)
        .with_n_seq_max(SEQUENCES)
        // One pool of cells, so that copying a sequence shares its cells.
        .with_kv_unified(true)
        .with_n_threads(threads)
        .with_n_threads_batch(threads);
    model
        .new_context(backend, parameters)
        .map_err(|error| ModelError::Memory(format!("no context of {window} tokens can be made ({error})")))
}

/// Adapters of one model by file, loaded once. The model owns and frees them.
#[derive(Default)]
pub(super) struct Adapters {
    loaded: HashMap<PathBuf, LlamaLoraAdapter>,
    current: Option<PathBuf>,
}

impl Adapters {
    /// Makes `wanted` the only adapter of `context`.
    pub fn set(
        &mut self,
        model: &LlamaModel,
        context: &mut LlamaContext<'_>,
        wanted: Option<&Path>,
    ) -> Result<(), ModelError> {
        if self.current.as_deref() == wanted {
            return Ok(());
        }
        let refused = |path: &Path, why: String| {
            ModelError::Request(format!("the adapter {} cannot be used: {why}", path.display()))
        };
        match wanted {
            Some(path) => {
                if !self.loaded.contains_key(path) {
                    let adapter = init(model, path).ok_or_else(|| {
                        refused(path, "it is no LoRA adapter for this model, or it is damaged".into())
                    })?;
                    self.loaded.insert(path.to_owned(), adapter);
                }
                if let Some(adapter) = self.loaded.get_mut(path) {
                    context
                        .lora_adapter_set(adapter, 1.0)
                        .map_err(|error| refused(path, error.to_string()))?;
                }
            }
            None => {
                let current = self.current.as_ref().and_then(|path| self.loaded.get_mut(path));
                if let Some(adapter) = current {
                    context.lora_adapter_remove(adapter).map_err(|error| {
                        ModelError::Unavailable(format!("an adapter cannot be removed: {error}"))
                    })?;
                }
            }
        }
        self.current = wanted.map(Path::to_owned);
        Ok(())
    }
}

/// Loads an adapter while a context lives, which the safe interface does not allow.
fn init(model: &LlamaModel, path: &Path) -> Option<LlamaLoraAdapter> {
    let path = std::ffi::CString::new(path.to_str()?).ok()?;
    // SAFETY: `LlamaModel` is `repr(transparent)` over a non-null pointer to `llama_model`, so its bytes are that pointer. llama.cpp adds
    // the adapter to the model's own list and reads its tensors; no other thread uses the model, and a context does not hold that
    // list. `LlamaLoraAdapter` is likewise `repr(transparent)` over a non-null pointer, which was checked. The model
    // outlives every adapter, as `Adapters` lives in the same scope as the context that borrows it.
    unsafe {
        let model: *mut llama_cpp_sys_2::llama_model = std::mem::transmute_copy(model);
        let adapter = llama_cpp_sys_2::llama_adapter_lora_init(model, path.as_ptr());
        let adapter = std::ptr::NonNull::new(adapter)?;
        Some(std::mem::transmute::<std::ptr::NonNull<llama_cpp_sys_2::llama_adapter_lora>, LlamaLoraAdapter>(
            adapter,
        ))
    }
}

/// The text of a special token, as templates want it.
pub(super) fn special(model: &LlamaModel, token: LlamaToken) -> String {
    if token.0 < 0 {
        return String::new();
    }
    String::from_utf8_lossy(&model.vocab().token_to_piece(token, true, None)).into_owned()
}
