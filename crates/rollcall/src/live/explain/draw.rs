//! An explanation for people.

use readiness::Time;

use super::{Cause, Explanation};
use crate::eval::title;
use crate::forest::age;
use crate::text::{Line, Style, wrap};

/// Where the words begin.
const LABEL: usize = 10;
/// Where there is no terminal nothing is broken.
const ENDLESS: usize = usize::MAX / 2;
/// A terminal narrower than this breaks words.
const NARROWEST: usize = 24;
/// So many lines of one text.
const LINES: usize = 8;

/// All of them, within that width.
pub(super) fn text(told: &[Explanation], now: Time, colour: bool, width: Option<usize>) -> String {
    let mut page = Page { now, width: width.unwrap_or(ENDLESS).max(NARROWEST), lines: Vec::new() };
    for explanation in told {
        page.explanation(explanation);
    }
    let room = width.unwrap_or(ENDLESS);
    let drawn =
        page.lines.iter().map(|(line, whole)| line.fit(if *whole { ENDLESS } else { room }, colour) + "\n");
    drawn.collect()
}

struct Page {
    now: Time,
    width: usize,
    /// Each, and whether it is never cut.
    lines: Vec<(Line, bool)>,
}

impl Page {
    fn explanation(&mut self, told: &Explanation) {
        if !self.lines.is_empty() {
            self.lines.push((Line::default(), false));
        }
        let object = &told.object;
        let title = title(&object.kind, &object.namespace, &object.name);
        let head = Line::new(Style::Bold, title).then(Style::Plain, "  ");
        self.lines.push((
            head.then(Style::of(told.verdict), told.verdict).then(Style::Plain, format!("  {}", told.reason)),
            false,
        ));
        self.say("", &told.message);
        if !told.policy.is_empty() {
            self.say("policy", &told.policy);
        }
        if let Some(written) = &told.written {
            self.say("written", written);
        }
        self.since(told.since.as_deref());
        match told.causes.len() {
            0 => self.say("", "nothing holds it back"),
            _ => self.lines.push((Line::default(), false)),
        }
        for (at, cause) in told.causes.iter().enumerate() {
            self.cause(at + 1, cause);
        }
        if told.more > 0 {
            self.lines.push((
                Line::new(Style::Plain, format!("and {} more causes: --limit shows them", told.more)),
                false,
            ));
        }
        for what in &told.not_read {
            self.say("not read", what);
        }
    }

    fn cause(&mut self, number: usize, cause: &Cause) {
        let object = &cause.object;
        let title = title(&object.kind, &object.namespace, &object.name);
        let head = Line::new(Style::Bold, format!("{number}. {title}")).then(Style::Plain, "  ");
        self.lines.push((
            head.then(Style::of(cause.verdict), cause.verdict)
                .then(Style::Plain, format!("  {}", cause.reason)),
            false,
        ));
        self.say("", &cause.message);
        if cause.path.len() > 1 {
            self.say("path", &cause.path.join(" → "));
        }
        self.say("rule", &cause.rule);
        self.say("branch", &cause.branch);
        let values: Vec<String> =
            cause.values.iter().map(|value| format!("{} = {}", value.field, value.value)).collect();
        self.each("values", &values);
        self.since(cause.since.as_deref());
        let owns: Vec<String> =
            cause.owns.iter().map(|owned| format!("{}: {}", owned.object, owned.says)).collect();
        self.each("below", &owns);
        self.holders(cause);
        let events: Vec<String> = cause.events.iter().map(|event| self.event(event)).collect();
        self.each("events", &events);
        self.say("changes", &cause.changes);
        self.whole("try", &cause.tries);
        self.lines.push((Line::default(), false));
    }

    fn event(&self, event: &super::Event) -> String {
        let at = event
            .at
            .parse::<jiff::Timestamp>()
            .map_or_else(|_| event.at.clone(), |at| age(self.now.0 - at.as_millisecond()));
        let count = event.count.map_or(String::new(), |count| format!(" ×{count}"));
        format!(
            "{at} ago {} {}{count} {} ({}): {}",
            event.r#type, event.reason, event.about, event.from, event.message
        )
    }

    fn holders(&mut self, cause: &Cause) {
        for holder in &cause.holders {
            let said = [
                holder.likely.map(|likely| format!(", likely {likely}")),
                holder.manager.as_ref().map(|manager| format!(", set by field manager {manager}")),
                holder.waits_for.map(|waits| format!("; waits for: {waits}")),
            ];
            let said: String = said.into_iter().flatten().collect();
            self.say("held by", &format!("finalizer {}, since {}{said}", holder.finalizer, holder.since));
            self.whole("release", std::slice::from_ref(&holder.release));
            self.say("warning", holder.warning);
        }
    }

    fn since(&mut self, since: Option<&str>) {
        let Some(since) = since else { return };
        let ago = since
            .parse::<jiff::Timestamp>()
            .map_or_else(|_| String::new(), |at| format!(" ({} ago)", age(self.now.0 - at.as_millisecond())));
        self.say("since", &format!("{since}{ago}"));
    }

    fn each(&mut self, label: &str, texts: &[String]) {
        for (at, text) in texts.iter().enumerate() {
            self.say(if at == 0 { label } else { "" }, text);
        }
    }

    /// Words behind a label, broken where the terminal ends.
    fn say(&mut self, label: &str, text: &str) {
        for (at, part) in wrap(text, self.width - LABEL - 3, LINES).into_iter().enumerate() {
            self.put(if at == 0 { label } else { "" }, part, false);
        }
    }

    /// Commands are for copying: they are not broken, a terminal does that better.
    fn whole(&mut self, label: &str, commands: &[String]) {
        for (at, command) in commands.iter().enumerate() {
            self.put(if at == 0 { label } else { "" }, command.clone(), true);
        }
    }

    fn put(&mut self, label: &str, text: String, whole: bool) {
        let line = Line::new(Style::Plain, "   ").then(Style::Dim, label).to(3 + LABEL);
        self.lines.push((line.then(Style::Plain, text), whole));
    }
}

#[cfg(test)]
mod tests {
    use super::super::Named;
    use super::*;
    use controller::inspect::holders::{Holder, WARNING};

    fn named(kind: &str, name: &str) -> Named {
        let [group, kind, namespace, name] = ["", kind, "shop", name].map(str::to_owned);
        Named { group, kind, namespace, name }
    }

    fn told() -> Explanation {
        let holder = Holder {
            finalizer: "argocd.argoproj.io/hook-finalizer".to_owned(),
            since: "2026-01-01T00:00:00Z".to_owned(),
            likely: Some("Argo CD"),
            waits_for: None,
            manager: Some("argocd-controller".to_owned()),
            release: "kubectl -n shop patch job.batch seed --type=json -p '[]'".to_owned(),
            warning: WARNING,
        };
        let cause = Cause {
            object: named("Job", "seed"),
            path: vec!["Shop books".to_owned(), "Job seed".to_owned()],
            verdict: "Stuck",
            reason: "Finalizers".to_owned(),
            message: "finalizer \u{1b}[31mx".to_owned(),
            rule: "deletion goes before every rule".to_owned(),
            branch: "metadata.deletionTimestamp is set".to_owned(),
            since: Some("2026-01-01T00:00:00Z".to_owned()),
            changes: "whoever set the finalizers taking them off".to_owned(),
            holders: vec![holder],
            ..Cause::default()
        };
        Explanation {
            object: named("Shop", "books"),
            verdict: "Stuck",
            reason: "ChildrenStuck".to_owned(),
            causes: vec![cause],
            ..Explanation::default()
        }
    }

    const NOW: Time = Time(1_767_225_600_000 + 300_000);

    #[test]
    fn the_story_is_told_in_order_and_commands_are_whole() {
        let drawn = text(&[told()], NOW, false, None);
        let order =
            ["Shop shop/books", "1. Job shop/seed", "path", "rule", "branch", "since", "held by", "changes"];
        let places: Vec<_> = order.iter().map(|word| drawn.find(word)).collect();
        assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{drawn}");
        assert!(
            drawn.contains("(5m ago)")
                && drawn.contains("likely Argo CD, set by field manager argocd-controller")
        );
        assert!(!drawn.contains('\u{1b}') && drawn.contains("\\u{1b}[31mx"), "{drawn}");
        let narrow = text(&[told()], NOW, false, Some(40));
        assert!(narrow.contains(&told().causes[0].holders[0].release), "{narrow}");
        let wide = |line: &&str| line.chars().count() > 40 && !line.contains("kubectl");
        assert_eq!(narrow.lines().find(wide), None, "{narrow}");
    }
}
