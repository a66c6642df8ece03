use crate::stage::*;
use peers_run::ports::Procs;
#[test]
fn bench() {
    isolated("bench_tmp::bench", || {
        let mut stage = Stage::limits(60, 120);
        stage.subreaper = true;
        for n in 0..9 {
            stage.gate(&format!("gate-{n}"), "true", "exit_code == 0");
        }
        stage.with(stage.book("argv: ['true'], tool: other"), async |mut procs, mut arriving| {
            for _ in 0..3 {
                procs.judge(stage.job());
                judged(&mut arriving).await;
            }
            let t = std::time::Instant::now();
            for _ in 0..20 {
                procs.judge(stage.job());
                judged(&mut arriving).await;
            }
            eprintln!("9 gates: {:?}", t.elapsed() / 20);
            let t = std::time::Instant::now();
            for _ in 0..20 {
                procs.run_peer(&launch("hi"));
                Turn::over(&mut arriving).await;
            }
            eprintln!("peer: {:?}", t.elapsed() / 20);
        });
        let line = r#"{"type":"assistant","message":{"id":"m","content":[{"type":"text","text":"some words that an agent says about a file and a test, and so on and so forth"}],"usage":{"input_tokens":1,"output_tokens":1}}}"#;
        std::fs::write(stage.repo("line"), format!("{line}\n").repeat(2000)).unwrap();
        let script = "for i in 1 2 3 4 5 6 7 8 9 10; do cat line line line line line line line line; done >big; for i in 1 2 3 4 5 6 7 8 9; do cat big; done";
        let argv =
            serde_json::to_string(&["/bin/sh", "-c", script, "--output-format", "stream-json"]).unwrap();
        let t = std::time::Instant::now();
        let turn = stage.turn(&format!("tool: claude, argv: {argv}"), "");
        eprintln!("flood of {} MB: {:?} {:?}", turn.exit.bytes_out / 1_000_000, t.elapsed(), turn.exit.class);
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        eprintln!("{}", status.lines().find(|l| l.starts_with("VmHWM")).unwrap());
        panic!("show");
    });
}
