//! Speed of the engine: one sequence against llama.cpp alone, and eight sequences that share a prefix against the same eight one
//! after another.
//!
//! llama.cpp alone is the generation test of its `llama-bench`: one random token a call, no sampling, no text. The tool itself
//! is not among the sources that the crate carries, so its loop is run here, on the same library and the same kernels.
#![allow(clippy::unwrap_used, reason = "a step that fails ends the benchmark")]

use std::num::NonZeroU32;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use llama_cpp_2::context::params::LlamaContextParams;
use llama_cpp_2::llama_backend::LlamaBackend;
use llama_cpp_2::llama_batch::LlamaBatch;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::model::params::LlamaModelParams;
use llama_cpp_2::token::LlamaToken;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::json;
use server::engine::client::Engine;
use server::engine::kernels;
use server::home::Home;
use server::model::registry;
use server::model::{Event, Message, Model, Priority, Request, Response, Role, Sampling};
use tests::bench;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

const MODELS: [&str; 2] = ["qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b"];

/// Tokens of one sequence.
const TOKENS: u32 = 128;

/// Sequences that share a prefix.
const SEQUENCES: usize = 8;

/// Tokens of that prefix.
const PREFIX: u32 = 512;

/// How often each figure is measured, in turns.
const ROUNDS: usize = 5;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, mode, model, kernels] = arguments.as_slice()
        && mode == "llama.cpp"
    {
        println!("{}", decode_alone(Path::new(model), Path::new(kernels)));
        return;
    }
    let data = tests::home::Home::new();
    let home = Home::at(data.path()).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    println!("{:<24}{:>14}{:>14}{:>10}", "", "tokens/s", "against", "ratio");
    let mut figures = json!({});
    for name in MODELS {
        figures[name] = runtime.block_on(measure(&home, name));
    }
    bench::write("engine", figures);
}

async fn measure(home: &Home, name: &str) -> serde_json::Value {
    let installed = registry::installed(home, Some(name)).unwrap();
    let file = installed.path.clone();
    let engine = Engine::new(home.clone(), env!("CARGO_BIN_EXE_tadpole").into(), installed);
    // Loads the model, and finds out which kernels this machine bears.
    generate(&engine, "warm", prompt(1), 1).await;
    let prompt = prompt_of(&engine, PREFIX).await;

    let (mut one, mut alone) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        one.push(decoding_speed(&engine, &format!("one {round}")).await);
        alone.push(llama_cpp(&file, &kernels::file(&home.run())));
    }
    let (mut together, mut apart) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS.div_ceil(2) {
        let all = generate(&engine, &format!("all {round}"), prompt.clone(), SEQUENCES).await;
        together.push(speed(&[all]));
        let mut singles = Vec::new();
        for sequence in 0..SEQUENCES {
            // A key of its own: nothing of another's prefix is used again.
            singles.push(generate(&engine, &format!("{round} {sequence}"), prompt.clone(), 1).await);
        }
        assert!(singles.iter().all(|it| it.cached_tokens == 0));
        apart.push(speed(&singles));
    }
    let row = |what: &str, ours: &mut [f64], theirs: &mut [f64]| {
        let (ours, theirs) = (median(ours), median(theirs));
        println!("{:<24}{ours:>14.1}{theirs:>14.1}{:>10.2}  {what}", name, ours / theirs);
        json!({ "tokens_per_second": ours, "against": theirs, "ratio": ours / theirs })
    };
    json!({
        "one sequence, against llama.cpp alone": row("one sequence, against llama.cpp alone", &mut one, &mut alone),
        "8 sharing a prefix, against one after another":
            row("8 sharing a prefix, against one after another", &mut together, &mut apart),
        "rounds": ROUNDS,
    })
}

/// Tokens per second of all answers, prompts included, as they ran one after another.
fn speed(responses: &[Response]) -> f64 {
    let tokens: u32 = responses.iter().map(|it| it.generated_tokens).sum();
    let time: Duration = responses.iter().map(|it| it.elapsed).sum();
    f64::from(tokens) / time.as_secs_f64()
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// A request with `words` words whose answer is long, whatever the model.
fn prompt(words: usize) -> String {
    let list = ["river", "stone", "lantern", "harbour", "winter", "orchard", "signal", "meadow"];
    let text: Vec<&str> = (0..words).map(|at| list[(at * at + at / 3) % list.len()]).collect();
    format!(
        "Some words: {}. Forget them. Count from 1 to 2000, one number a line, nothing else.",
        text.join(" ")
    )
}

/// A prompt of `tokens` tokens, as the model's own template and vocabulary count them.
async fn prompt_of(engine: &Engine, tokens: u32) -> String {
    let length = async |words| generate_up_to(engine, "length", prompt(words), 1, 1).await.prompt_tokens;
    let (mut low, mut high) = (1, tokens as usize);
    while low < high {
        let middle = (low + high) / 2;
        if length(middle).await < tokens { low = middle + 1 } else { high = middle }
    }
    prompt(low)
}

async fn generate(engine: &Engine, key: &str, text: String, sequences: usize) -> Response {
    let response = generate_up_to(engine, key, text, sequences, TOKENS).await;
    assert!(
        response.sequences.iter().all(|it| it.generated_tokens == TOKENS),
        "an answer ended early, so the figures cannot be compared"
    );
    response
}

async fn generate_up_to(engine: &Engine, key: &str, text: String, sequences: usize, tokens: u32) -> Response {
    // Dropped at once: events are for people.
    let (events, _) = mpsc::channel(1);
    engine.generate(request(key, text, sequences, tokens), events, CancellationToken::new()).await.unwrap()
}

fn request(key: &str, text: String, sequences: usize, tokens: u32) -> Request {
    let sampling = Sampling { temperature: 0.8, top_p: 0.95, top_k: 40, ..Sampling::GREEDY };
    Request {
        messages: vec![Message::new(Role::User, text)],
        tools: Vec::new(),
        thinking: false,
        prefill: "1\n2\n3\n".to_owned(),
        samples: (0..sequences).map(|seed| Sampling { seed: seed as u64, ..sampling }).collect(),
        max_tokens: tokens,
        stop: Vec::new(),
        grammar: None,
        adapter: None,
        priority: Priority::Person,
        cache_key: key.to_owned(),
    }
}

/// Tokens per second of one sequence after its first token, as its reader sees them come.
async fn decoding_speed(engine: &Engine, key: &str) -> f64 {
    let (events, mut received) = mpsc::channel(1024);
    let first = tokio::spawn(async move {
        let mut first = None;
        while let Some(event) = received.recv().await {
            if matches!(event, Event::Text { .. }) {
                first.get_or_insert_with(Instant::now);
            }
        }
        first.unwrap()
    });
    let request = request(key, prompt(4), 1, TOKENS);
    let response = engine.generate(request, events, CancellationToken::new()).await.unwrap();
    assert_eq!(response.generated_tokens, TOKENS, "the answer ended early");
    let end = Instant::now();
    f64::from(TOKENS - 1) / (end - first.await.unwrap()).as_secs_f64()
}

/// The same figure of llama.cpp alone, in a process of its own.
fn llama_cpp(model: &Path, kernels: &Path) -> f64 {
    let own = std::env::current_exe().unwrap();
    let output = Command::new(own).arg("llama.cpp").args([model, kernels]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().parse().unwrap()
}

/// What `llama-bench -p 0 -n 128` measures.
fn decode_alone(model: &Path, kernels: &Path) -> f64 {
    kernels::load(kernels).unwrap();
    let mut backend = LlamaBackend::init().unwrap();
    backend.void_logs();
    let model = LlamaModel::load_from_file(&backend, model, &LlamaModelParams::default()).unwrap();
    let threads = std::thread::available_parallelism().unwrap().get() as i32;
    let parameters = LlamaContextParams::default()
        .with_n_ctx(NonZeroU32::new(TOKENS))
        .with_n_threads(threads)
        .with_n_threads_batch(threads);
    let mut context = model.new_context(&backend, parameters).unwrap();
    let mut random = StdRng::seed_from_u64(0);
    let mut decode = |position: u32| {
        let token = random.random_range(0..model.n_vocab());
        let mut batch = LlamaBatch::new(1, 1);
        batch.add(LlamaToken(token), position as i32, &[0], true).unwrap();
        context.decode(&mut batch).unwrap();
        context.get_logits_ith(0)[0]
    };
    // The first call also makes the graph.
    std::hint::black_box(decode(0));
    let started = Instant::now();
    for position in 1..TOKENS {
        std::hint::black_box(decode(position));
    }
    f64::from(TOKENS - 1) / started.elapsed().as_secs_f64()
}
