//! Runs a model from a shared library, in Rust, with the C interface of the runtime alone.
//!
//! usage: deploy_rust resnet18.so input.bin

mod tvm;

use std::{env, fs, process::ExitCode};

use tvm::{Argument, Error, Module};

const BEST: usize = 5;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().collect();
    let [_, library, input] = arguments.as_slice() else {
        eprintln!("usage: deploy_rust library input");
        return ExitCode::from(2);
    };
    match classify(library, input) {
        Ok(scores) => {
            print_best(&scores);
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// The scores of the classes for the picture in a file.
fn classify(library: &str, input: &str) -> Result<Vec<f32>, Error> {
    let model = Module::load(library)?;
    let executor = model.function("default")?.call(&[Argument::Cpu(0)])?.module()?;
    let name = "data".into();
    let mut picture = executor.function("get_input")?.call(&[Argument::Text(name)])?.array()?;
    picture.copy_from(&read_floats(input, picture.len())?)?;
    executor.function("run")?.call(&[])?;
    let output = executor.function("get_output")?.call(&[Argument::Int(0)])?.array()?;
    output.to_vec()
}

/// The numbers of a file that has `count` of them, as float32 in the machine's byte order.
fn read_floats(path: &str, count: usize) -> Result<Vec<f32>, Error> {
    let bytes = fs::read(path).map_err(|error| Error(format!("{path}: {error}")))?;
    if bytes.len() != 4 * count {
        let found = bytes.len();
        return Err(Error(format!("{path} must have {} bytes, it has {found}", 4 * count)));
    }
    let words = bytes.chunks_exact(4);
    Ok(words.map(|word| f32::from_ne_bytes(word.try_into().unwrap())).collect())
}

fn print_best(scores: &[f32]) {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a])); // stable: the first of equal ones wins
    for index in order.into_iter().take(BEST) {
        println!("class {index:4}  {:.6}", scores[index]);
    }
}
