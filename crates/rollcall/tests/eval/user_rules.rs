//! Scripts and expressions as rules.

use super::{BAD, GOOD, eval, scratch};

const SCRIPT: &str = "local hs = {}\nif obj.status ~= nil and obj.status.up then\n  hs.status = 'Healthy'\n  \
                      hs.message = ' two\\n  lines \\n'\n  return hs\nend\nhs.status = 'Degraded'\nreturn hs\n";

fn up(up: bool) -> String {
    format!("apiVersion: x.io/v1\nkind: Db\nmetadata: {{name: d}}\nstatus: {{up: {up}, phase: Failed}}\n")
}

#[test]
fn scripts_come_from_a_directory_or_from_argocd_cm() {
    let dir = scratch("scripts");
    std::fs::create_dir_all(dir.join("lib/x.io/Db")).unwrap();
    std::fs::create_dir_all(dir.join("lib/x.io/Broken")).unwrap();
    std::fs::write(dir.join("lib/x.io/Db/health.lua"), SCRIPT).unwrap();
    std::fs::write(dir.join("lib/x.io/Broken/health.lua"), "local x =\nreturn end").unwrap();
    let indented = SCRIPT.replace('\n', "\n    ");
    let cm = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: argocd-cm}}\ndata:\n  resource.customizations.health.x.io_Db: |\n    {indented}\n"
    );
    std::fs::write(dir.join("cm.yaml"), cm).unwrap();
    for rules in ["lib", "cm.yaml"] {
        let rules = dir.join(rules).display().to_string();
        let args = ["-f", "-", "-o", "json", "--profile", "argocd", "--rules", &rules];
        let done = eval(&args, up(true).as_bytes());
        let profile = &done.json()[0]["profile"];
        assert_eq!(
            (&profile["status"], &profile["message"]),
            (&"Healthy".into(), &" two\n  lines \n".into())
        );
        assert_eq!(done.code, 0);
        assert_eq!(eval(&args, up(false).as_bytes()).json()[0]["profile"]["status"], "Degraded");
        let own = eval(&["-f", "-", "-o", "json", "--rules", &rules], up(true).as_bytes());
        assert_eq!(own.all("verdict"), ["Ready"]);
        let table = eval(&["-f", "-", "--profile", "argocd", "--rules", &rules], up(true).as_bytes());
        assert!(table.out.contains("line 5") && table.out.contains("two lines"), "{}", table.out);
    }
    let rules = dir.join("lib").display().to_string();
    let broken = eval(&["-f", "-", "-o", "json", "--rules", &rules], b"apiVersion: x.io/v1\nkind: Broken\n");
    assert_eq!((broken.all("reason"), broken.code), (vec!["RuleFailed".to_owned()], 2));
    broken.says(&["x.io/Broken/health.lua:"]);
    assert_eq!(eval(&["-f", "-", "--rules", "/no/such/place/at all"], GOOD.as_bytes()).code, 2);
}

#[test]
fn a_place_of_scripts_that_there_is_not_is_named_with_what_may_stand_there() {
    for place in ["./no-such-dir", "/nonexist", "nothing", "a/b/c", "../up", "no-such/"] {
        let done = eval(&["-f", "-", "--rules", place], GOOD.as_bytes());
        assert_eq!(done.code, 2, "{place}: {}", done.err);
        done.says(&[
            &format!("there is no directory or file {place}"),
            "NAMESPACE/NAME of a ConfigMap in the cluster",
        ]);
    }
}

#[test]
fn expressions_judge_every_object() {
    let rule = |input: &str, args: &[&str]| {
        eval(&[&["-f", "-", "-o", "json", "--cel-current", "status.up"], args].concat(), input.as_bytes())
    };
    let ready = rule(&up(true), &[]);
    assert_eq!((ready.all("verdict"), ready.code), (vec!["Ready".to_owned()], 0));
    let failed = rule(&up(false), &["--cel-failed", "status.phase == 'Failed'"]);
    assert_eq!((failed.all("verdict"), failed.code), (vec!["Failed".to_owned()], 1));
    let busy = rule(&up(true), &["--cel-in-progress", "status.phase == 'Failed'"]);
    assert_eq!(busy.all("verdict"), ["Progressing"]);
    let absent = rule(BAD, &[]);
    assert_eq!((absent.all("reason"), absent.code), (vec!["RuleFailed".to_owned()], 2));
    let deleted = "kind: Db\nmetadata: {deletionTimestamp: '2026-01-01T00:00:00Z'}\nstatus: {up: true}\n";
    assert_eq!(rule(deleted, &["--at", "2026-01-01T00:00:01Z"]).all("verdict"), ["Terminating"]);
    for wrong in ["status.", "nothing.up", "'text'", "size(1)"] {
        let done = eval(&["-f", "-", "--cel-current", wrong], BAD.as_bytes());
        assert_eq!((done.code, done.out.as_str()), (2, ""), "{wrong}");
        done.says(&["current:1:"]);
    }
}

#[test]
fn flux_with_expressions_answers_as_flux_would() {
    let object = |api_version: &str, kind: &str, meta: &str, status: &str| {
        format!(
            "apiVersion: {api_version}\nkind: {kind}\nmetadata: {{name: d, {meta}}}\nstatus: {{{status}}}\n"
        )
    };
    let db = |meta: &str, status: &str| object("x.io/v1", "Db", meta, status);
    let judge = |input: &str| {
        let done = eval(
            &[
                &["-f", "-", "-o", "json", "--profile", "flux", "--cel-current", "status.phase == 'Running'"]
                    [..],
                &[
                    "--cel-in-progress",
                    "status.phase == 'Starting'",
                    "--cel-failed",
                    "status.phase == 'Lost'",
                ],
            ]
            .concat(),
            input.as_bytes(),
        );
        (done.json()[0]["profile"]["status"].as_str().unwrap_or("null").to_owned(), done.code)
    };
    // (object, status, exit code)
    let stalled = "phase: Running, conditions: [{type: Stalled, status: 'True'}]";
    let table = [
        (db("", "phase: Running"), "Current", 0),
        (db("", "phase: Starting"), "InProgress", 1),
        (db("", "phase: Lost"), "Failed", 1),
        // No expression is true: kstatus without expressions would call it Current.
        (db("", "phase: Paused"), "InProgress", 1),
        // The generation is the only check of kstatus that stays.
        (db("generation: 2", "phase: Running, observedGeneration: 1"), "InProgress", 1),
        (db("deletionTimestamp: '2026-01-01T00:00:00Z'", "phase: Running"), "Current", 0),
        (db("", stalled), "Current", 0),
        // A missing field is an error, and so is a generation that is no integer.
        (db("", "other: 1"), "Unknown", 2),
        (db("generation: 2", "phase: Running, observedGeneration: '2'"), "Unknown", 2),
        // Flux's rule for Jobs stands before the expressions.
        (object("batch/v1", "Job", "", "phase: Running, active: 1"), "InProgress", 1),
    ];
    for (input, status, code) in table {
        assert_eq!(judge(&input), (status.to_owned(), code), "{input}");
    }
    let words = |input: &str, args: &[&str]| eval(&[&["-f", "-"], args].concat(), input.as_bytes()).out;
    let flux = ["--profile", "flux", "--cel-current", "status.phase == 'Running'"];
    assert!(words(&db("", "phase: Paused"), &flux).contains("no expression is true"));
    assert!(words(&db("", "phase: Running"), &flux).contains("current is true"));
    assert!(words(&db("", "other: 1"), &flux).contains("current: "));
    // The other peers have no expressions.
    let kstatus = ["--profile", "kstatus", "--cel-current", "status.phase == 'Running'"];
    assert!(words(&db("", "phase: Paused"), &kstatus).contains("built in"));
}

#[test]
fn a_hostile_script_costs_its_own_kind_only() {
    let dir = scratch("hostile");
    std::fs::create_dir_all(dir.join("x.io/Db")).unwrap();
    std::fs::write(dir.join("x.io/Db/health.lua"), "while true do end").unwrap();
    let rules = dir.display().to_string();
    let done =
        eval(&["-f", "-", "-o", "json", "--rules", &rules], format!("{}---\n{GOOD}", up(true)).as_bytes());
    assert_eq!(done.all("reason"), ["RuleLimit", "Exists"]);
    assert_eq!((done.all("verdict")[0].as_str(), done.code), ("Unknown", 2));
}
