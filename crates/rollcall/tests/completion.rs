//! Completion in each shell.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what fails here is a failed test")]

use std::path::Path;
use std::process::Command;

fn rollcall(args: &[&str]) -> String {
    let said = Command::new(env!("CARGO_BIN_EXE_rollcall")).args(args).output().unwrap();
    assert!(said.status.success(), "{args:?}: {said:?}");
    String::from_utf8(said.stdout).unwrap()
}

/// Runs a shell without the user's settings and returns its output.
fn shell(program: &[&str], script: &str) -> String {
    let folder = Path::new(env!("CARGO_BIN_EXE_rollcall")).parent().unwrap();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    let mut command = Command::new("timeout");
    command
        .arg("60")
        .args(program)
        .args(["-c", script])
        .env("PATH", path)
        .env("HOME", env!("CARGO_TARGET_TMPDIR"));
    let said = command.env("TERM", "dumb").output().unwrap();
    assert!(said.status.success(), "{}: {said:?}", program[0]);
    String::from_utf8_lossy(&said.stdout).into_owned()
}

/// Typed text and its completion: a command, and an option's value.
const TYPED: [(&str, &str); 2] =
    [("rollcall health", "health-lua"), ("rollcall health-lua --format c", "configmap")];

#[test]
fn bash_completes_a_command_and_a_word_of_an_option() {
    for (typed, word) in TYPED {
        let script = format!(
            "source <(rollcall completion bash); COMP_WORDS=({typed}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); \
             _rollcall rollcall ${{COMP_WORDS[-1]}} ${{COMP_WORDS[-2]}}; echo ${{COMPREPLY[@]}}"
        );
        assert_eq!(shell(&["bash", "--norc"], &script).trim(), word);
    }
}

/// Runs completion at a prompt in a terminal, as it does not complete anywhere else. The key after it shows the line.
const AT_A_PROMPT: &str = r#"
zmodload zsh/zpty
zpty inner zsh -f -i
zpty -w inner 'autoload -Uz compinit; compinit -u -D; source <(rollcall completion zsh)'
zpty -w inner 'tell() { zle expand-or-complete; print -r -- "<$BUFFER>"; exit }; zle -N tell; bindkey "^T" tell; print rea""dy'
zpty -r inner seen '*ready*'
zpty -n -w inner $'TYPED\C-T'
while zpty -r inner seen; do print -r -- $seen; done
true
"#;

#[test]
fn zsh_completes_a_command_and_a_word_of_an_option() {
    for (typed, word) in TYPED {
        let seen = shell(&["zsh", "-f"], &AT_A_PROMPT.replace("TYPED", typed));
        let line = seen.rsplit_once('<').and_then(|(_, rest)| rest.split_once('>')).map(|(line, _)| line);
        assert_eq!(line.and_then(|line| line.split_whitespace().last()), Some(word), "{seen}");
    }
}

#[test]
fn fish_completes_a_command_and_a_word_of_an_option() {
    for (typed, word) in TYPED {
        let script = format!("source (rollcall completion fish | psub); complete -C '{typed}'");
        let candidates = shell(&["fish", "--no-config"], &script);
        let words: Vec<_> = candidates.lines().filter_map(|line| line.split('\t').next()).collect();
        assert_eq!(words, [word], "{candidates}");
    }
}

#[test]
fn kubectl_is_told_what_could_follow() {
    let ask = |words: &[&str]| {
        let said = rollcall(&[&["__complete"], words].concat());
        let mut lines: Vec<_> = said.lines().map(|l| l.split('\t').next().unwrap().to_owned()).collect();
        let directive = lines.pop().unwrap();
        (lines, directive)
    };
    let (commands, directive) = ask(&[""]);
    assert!(commands.contains(&"tree".to_owned()) && directive == ":4", "{commands:?}");
    assert!(!commands.iter().any(|c| c.starts_with('_')), "{commands:?}");
    assert_eq!(ask(&["tr"]).0, ["tree"]);
    assert_eq!(ask(&["health-lua", "--format", "c"]), (vec!["configmap".to_owned()], ":4".to_owned()));
    assert_eq!(ask(&["health-lua", "--fo"]).0, ["--format"]);
    assert_eq!(ask(&["eval", "-f", ""]), (vec![], ":0".to_owned()));
}
