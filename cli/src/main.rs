//! The ebb command.

use std::future::Future;
use std::io::Write;
use std::pin::Pin;
use std::process::ExitCode;

use anyhow::Context;
use clap::Parser;
use ebb::args::{Command, Shared, Trigger};
use ebb::cli::{Cli, Top};
use ebb::commands;
use ebb::dev::{BusKind, Dev, DevArgs, SeparateProcesses};
use host::config::Environment;
use store::Postgres;

fn main() -> ExitCode {
    // The supervisors of programs come from the executable that starts them.
    containment::serve().unwrap_or_else(run)
}

fn run() -> ExitCode {
    host::limit_arenas();
    let Cli { shared, command } = Cli::parse();
    match command {
        // A function creates its own runtime.
        Top::Serve(serve) => serve.function.main(),
        Top::Dev(args) => finish(dev(&shared, &args)),
        Top::Migrate { database_url, grant_to } => finish(migrate(&database_url, &grant_to)),
        Top::Other(command) => finish(commands::run(&shared, command)),
    }
}

#[tokio::main]
async fn finish(work: impl Future<Output = anyhow::Result<ExitCode>>) -> ExitCode {
    work.await.unwrap_or_else(|error| commands::failure(&error))
}

/// An `ebb dev` of either kind.
struct Up {
    url: String,
    token: String,
    database: String,
    stop: Pin<Box<dyn Future<Output = anyhow::Result<()>>>>,
}

async fn start(shared: &Shared, args: &DevArgs) -> anyhow::Result<Up> {
    Ok(match args.bus {
        BusKind::Local => {
            let dev = Dev::start(&shared.data, args).await?;
            let (url, token, database) = (dev.url.clone(), dev.token.clone(), dev.database.clone());
            Up { url, token, database, stop: Box::pin(dev.stop()) }
        }
        BusKind::PubsubEmulator => {
            let dev = SeparateProcesses::start(&shared.data, args).await?;
            let (url, token, database) = (dev.url.clone(), dev.token.clone(), dev.database.clone());
            Up { url, token, database, stop: Box::pin(dev.stop()) }
        }
    })
}

async fn dev(shared: &Shared, args: &DevArgs) -> anyhow::Result<ExitCode> {
    host::init_telemetry(&Environment::of_process());
    host::metrics::init();
    let stop = host::shutdown_signal();
    let dev = start(shared, args).await?;
    // A closed pipe must not end the server.
    let _ = writeln!(
        std::io::stdout(),
        "Ebbflow is up at {} on {}.\nTrigger a workflow with `ebb trigger NAME --watch`; stop with Ctrl-C.",
        dev.url,
        dev.database
    );
    let mut code = ExitCode::SUCCESS;
    if let Some(workflow) = &args.run {
        let here = Shared { url: Some(dev.url.clone()), token: Some(dev.token.clone()), ..shared.clone() };
        code = commands::run(&here, Command::Trigger(Trigger::watched(workflow))).await?;
    }
    if !args.once {
        stop.await;
    }
    dev.stop.await?;
    Ok(code)
}

async fn migrate(url: &str, grant_to: &[String]) -> anyhow::Result<ExitCode> {
    Postgres::migrate(url).await.context("cannot update the database schema")?;
    Postgres::grant_to(url, grant_to).await.context("cannot grant rights to the database users")?;
    println!("The database schema is up to date.");
    Ok(ExitCode::SUCCESS)
}
