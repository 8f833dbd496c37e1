//! `ebb migrate` of another database than the one in the environment, as a restore drill does it.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;

use crate::project::printed;

/// Reads what follows a length that counts itself, as all of Postgres' messages have it.
fn message(stream: &mut TcpStream) -> Vec<u8> {
    let mut length = [0; 4];
    stream.read_exact(&mut length).unwrap();
    let mut rest = vec![0; u32::from_be_bytes(length) as usize - 4];
    stream.read_exact(&mut rest).unwrap();
    rest
}

/// A Postgres that asks for a password and rejects it. Returns who logged in, where, and with which password.
fn asked_for_password(listener: &TcpListener) -> (String, String) {
    let (mut stream, _) = listener.accept().unwrap();
    let login = String::from_utf8_lossy(&message(&mut stream)).into_owned();
    // In clear text.
    stream.write_all(&[b'R', 0, 0, 0, 8, 0, 0, 0, 3]).unwrap();
    let mut kind = [0];
    stream.read_exact(&mut kind).unwrap();
    assert_eq!(kind, [b'p']);
    let password = message(&mut stream);
    (login, String::from_utf8_lossy(&password).trim_end_matches('\0').to_owned())
}

/// No argument contains the password, and the address in the arguments precedes the one in the environment.
#[test]
fn the_password_may_come_from_a_variable_of_its_own() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let url = format!("--database-url=postgres://ebbflow@{address}/clone?sslmode=disable");
    let migrating = std::thread::spawn(move || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ebb"));
        let elsewhere = ("DATABASE_URL", "postgres://ebbflow:other@localhost/ebbflow?host=/nowhere");
        command.args(["migrate", &url]).envs([elsewhere, ("PGPASSWORD", "of the clone")]).output().unwrap()
    });
    let (login, password) = asked_for_password(&listener);
    assert!(login.contains("user\0ebbflow\0") && login.contains("database\0clone\0"), "{login:?}");
    assert_eq!(password, "of the clone");
    let output = migrating.join().unwrap();
    assert!(!output.status.success() && !printed(&output).contains("of the clone"), "{}", printed(&output));
}
