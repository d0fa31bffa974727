//! What requests of one process share.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tasks::sandbox::Sandbox;
use tasks::workspace::Pool;
use tokio::sync::OnceCell;

use super::FixError;
use crate::config::Config;
use crate::engine::client::Engine;
use crate::home::Home;
use crate::model::openai::Endpoint;
use crate::model::{Model, ModelError, registry};
use crate::trust::Trust;

/// What requests of one process share: data directory, configuration, and the sandbox and model, which are
/// made on first use.
pub struct Context {
    /// The data directory.
    pub home: Home,
    /// The person's configuration.
    pub config: Config,
    /// Our own binary: the engine and the sandbox's helper.
    pub executable: PathBuf,
    trust: Trust,
    trusted_for_this_run: Mutex<BTreeSet<PathBuf>>,
    sandbox: OnceCell<Arc<Sandbox>>,
    model: OnceCell<Arc<dyn Model>>,
    /// The last answer of [`Context::model_obstacle`], and what it was given for.
    obstacle: Mutex<Option<(registry::State, Option<String>)>>,
}

impl Context {
    /// The context of this process. Nothing is probed or loaded.
    ///
    /// # Errors
    /// If our own binary cannot be found.
    pub fn new(home: Home, config: Config) -> Result<Self, FixError> {
        let executable = std::env::current_exe()
            .map_err(|error| FixError::Environment(format!("cannot find the tadpole binary: {error}")))?;
        Ok(Self {
            trust: Trust::new(home.root().join("trust.json")),
            home,
            config,
            executable,
            trusted_for_this_run: Mutex::default(),
            sandbox: OnceCell::new(),
            model: OnceCell::new(),
            obstacle: Mutex::default(),
        })
    }

    /// Whether the person has trusted `repo` (or a directory above it).
    pub fn trusted(&self, repo: &Path) -> bool {
        let for_this_run = self.trusted_for_this_run.lock().unwrap_or_else(PoisonError::into_inner);
        let canonical = repo.canonicalize();
        canonical.is_ok_and(|repo| repo.ancestors().any(|ancestor| for_this_run.contains(ancestor)))
            || self.trust.contains(repo)
    }

    /// Remembers that the person trusts `repo`.
    ///
    /// # Errors
    /// If that cannot be stored.
    pub fn trust(&self, repo: &Path) -> Result<(), FixError> {
        self.trust
            .add(repo)
            .map_err(|error| FixError::Environment(format!("cannot trust {}: {error}", repo.display())))
    }

    /// Trusts `repo` as long as this process lives.
    pub fn trust_for_this_run(&self, repo: &Path) {
        if let Ok(repo) = repo.canonicalize() {
            self.trusted_for_this_run.lock().unwrap_or_else(PoisonError::into_inner).insert(repo);
        }
    }

    /// The sandbox, probed on first use.
    ///
    /// # Errors
    /// If this machine cannot keep the promise.
    pub async fn sandbox(&self) -> Result<Arc<Sandbox>, FixError> {
        let probe = || async {
            let helper = self.executable.clone();
            let probed = tokio::task::spawn_blocking(move || Sandbox::probe(helper)).await;
            match probed {
                Ok(Ok(sandbox)) => Ok(Arc::new(sandbox)),
                Ok(Err(error)) => Err(FixError::Environment(error.to_string())),
                Err(error) => Err(FixError::Environment(format!("the sandbox could not be probed: {error}"))),
            }
        };
        self.sandbox.get_or_try_init(probe).await.cloned()
    }

    /// The workspaces.
    ///
    /// # Errors
    /// If their directory cannot be made.
    pub fn pool(&self) -> Result<Pool, FixError> {
        Pool::open(&self.home.pool()).map_err(|error| FixError::Environment(error.to_string()))
    }

    /// The model that is in force. It is not loaded by this.
    ///
    /// # Errors
    /// If it is not installed, or its file is no usable model.
    pub async fn model(&self) -> Result<Arc<dyn Model>, FixError> {
        self.model.get_or_try_init(|| async { self.open_model() }).await.cloned()
    }

    fn open_model(&self) -> Result<Arc<dyn Model>, FixError> {
        if let Some(endpoint) = &self.config.endpoint {
            return Ok(Arc::new(Endpoint::new(endpoint)?));
        }
        let installed = registry::installed(&self.home, self.config.model.as_deref())?;
        Ok(Arc::new(Engine::new(self.home.clone(), self.executable.clone(), installed)))
    }

    /// For `tadpole.status`: the model in force, in one line.
    pub fn model_status(&self) -> String {
        if let Some(endpoint) = &self.config.endpoint {
            return format!("{} at {}", endpoint.model, endpoint.url);
        }
        match registry::installed(&self.home, self.config.model.as_deref()) {
            Ok(installed) => installed.name,
            Err(error) => error.to_string(),
        }
    }

    /// Why no model can be used now, if so. Looks at files, loads nothing; a file is read again only when it has changed, as
    /// this is asked for with every code action.
    pub fn model_obstacle(&self) -> Option<String> {
        if self.config.endpoint.is_some() {
            return None;
        }
        let configured = self.config.model.as_deref();
        let state = registry::state(&self.home, configured);
        let mut known = self.obstacle.lock().unwrap_or_else(PoisonError::into_inner);
        if known.as_ref().is_none_or(|(of, _)| *of != state) {
            let obstacle = registry::installed(&self.home, configured).err().map(|error| error.to_string());
            *known = Some((state, obstacle));
        }
        known.as_ref().and_then(|(_, obstacle)| obstacle.clone())
    }
}

impl From<ModelError> for FixError {
    fn from(error: ModelError) -> Self {
        match error {
            ModelError::Cancelled => Self::Cancelled,
            other => Self::Environment(other.to_string()),
        }
    }
}
