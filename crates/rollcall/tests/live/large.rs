//! A tree too large for a person to read.

use std::process::{Command, Stdio};

use serde_json::Value;

use super::cluster::{LiveCluster, custom, done, pod};

/// Number of databases that share the pods.
const DATABASES: usize = 10;

fn pods() -> usize {
    let full = std::env::var("ROLLCALL_FULL").is_ok_and(|full| full == "1");
    if full { 100_000 } else { 3_000 }
}

/// Returns a Shop with its databases and many pods below them, the last of which does not start.
async fn shop(name: &str, pods: usize) -> LiveCluster {
    let cluster = LiveCluster::start(name).await;
    let shop = cluster.create(&custom("Shop", "books"));
    let databases: Vec<Value> =
        (0..DATABASES).map(|n| cluster.below(&shop, custom("Database", &format!("db-{n}")))).collect();
    for n in 0..pods {
        let waits = (n + 1 == pods).then_some(("CrashLoopBackOff", "back-off 5m0s"));
        cluster.below(&databases[n % DATABASES], pod(&format!("web-{n:06}"), waits));
    }
    cluster
}

/// Runs the command as a child of Python, which reports its CPU time in seconds and its peak memory in KiB.
async fn measured(cluster: &LiveCluster, args: &[&str]) -> (Option<i32>, String, f64, u64) {
    const SCRIPT: &str = "import resource, subprocess, sys\n\
        code = subprocess.call(sys.argv[1:])\n\
        used = resource.getrusage(resource.RUSAGE_CHILDREN)\n\
        print(used.ru_utime + used.ru_stime, used.ru_maxrss, file=sys.stderr)\n\
        sys.exit(code)";
    let plain = cluster.rollcall(args);
    let mut command = Command::new("python3");
    command.args(["-c", SCRIPT]).arg(plain.get_program()).args(plain.get_args());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let (code, out, err) = done(command).await;
    assert!(code != Some(2), "{out}{err}");
    let last: Vec<&str> = err.lines().last().unwrap().split(' ').collect();
    (code, out, last[0].parse().unwrap(), last[1].parse().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_tree_shows_the_worst_counts_the_rest_and_stays_within_bounds() {
    let pods = pods();
    let few = shop("small", 2 * DATABASES).await;
    let [small_tree, small_explain] =
        [measured(&few, &["tree", "shop/books"]).await.3, measured(&few, &["explain", "shop/books"]).await.3];
    let cluster = shop("large", pods).await;
    let (code, out, cpu, peak) = measured(&cluster, &["tree", "shop/books"]).await;
    println!("{pods} pods: {cpu:.2} s CPU, {} MiB, for a few {}", peak / 1024, small_tree / 1024);
    assert_eq!(code, Some(1), "{out}");
    within(pods, peak - small_tree.min(peak), cpu);
    let lines: Vec<&str> = out.lines().collect();
    assert!(lines[2].contains("Database") && lines[2].contains("Failed"), "{out}");
    assert!(lines[3].contains("CrashLoopBackOff"), "the worst comes first: {}", lines[3]);
    let more = lines.iter().filter(|line| line.ends_with(&format!("and {} more", pods / DATABASES - 100)));
    assert_eq!(more.count(), DATABASES, "{out}");
    assert_eq!(lines.len(), 2 + DATABASES * (1 + 100 + 1));
    let (_, out, _) = cluster.run(&["tree", "shop/books", "--depth", "1", "--limit", "3"]).await;
    let ends: Vec<&str> = out.lines().filter_map(|line| line.split("and ").nth(1)).collect();
    let each = format!("{} more", pods / DATABASES);
    assert_eq!(ends, [&*each, &*each, &*each, "7 more"], "{out}");
    let (code, out, cpu, peak) = measured(&cluster, &["explain", "shop/books"]).await;
    println!("explain: {cpu:.2} s CPU, {} MiB, for a few {}", peak / 1024, small_explain / 1024);
    assert!(
        code == Some(1) && out.contains("1. Pod default/web-") && out.contains("CrashLoopBackOff"),
        "{out}"
    );
    within(pods, peak - small_explain.min(peak), cpu);
}

/// Checks what a large tree takes beyond a small one: one row per object, not one object. Measured 0.9 KiB per row; an object has
/// 4. The program itself differs from build to build; the rest is what its allocator commits ahead. CPU time is bounded per
/// object, too.
fn within(pods: usize, more: u64, cpu: f64) {
    let bound = 16 * 1024 + 2 * pods as u64;
    assert!(more < bound, "{more} KiB more at its peak than for a few pods, of at most {bound}");
    assert!(cpu < 2.0 + f64::from(u32::try_from(pods).unwrap()) * 0.0004, "{cpu} s for {pods}");
}
