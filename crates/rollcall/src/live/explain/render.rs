//! Renders an explanation for people.

use inspect::holder_signs::HolderState;
use inspect::recent_events::RecentEvent;
use readiness::{Level, Time};

use super::object_explanation::{ExplainedCause, ObjectExplanation};
use crate::eval::object_title;
use crate::text::{StyledLine, TextStyle, wrap_text};
use crate::tree_table::format_age;

/// Column at which texts begin.
const LABEL_WIDTH: usize = 10;
/// Width without a terminal: nothing is wrapped.
const UNLIMITED_WIDTH: usize = usize::MAX / 2;
/// Minimum width; a narrower terminal breaks lines itself.
const MIN_PAGE_WIDTH: usize = 24;
/// Maximum number of lines of one text.
const MAX_TEXT_LINES: usize = 8;

/// Renders all explanations in this width.
pub(super) fn render_explanations(
    explained: &[ObjectExplanation],
    now: Time,
    colour: bool,
    width: Option<usize>,
) -> String {
    let mut page = ExplanationPage {
        now,
        width: width.unwrap_or(UNLIMITED_WIDTH).max(MIN_PAGE_WIDTH),
        lines: Vec::new(),
    };
    for explanation in explained {
        page.add_explanation(explanation);
    }
    let room = width.unwrap_or(UNLIMITED_WIDTH);
    let drawn = page
        .lines
        .iter()
        .map(|(line, whole)| line.fit_width(if *whole { UNLIMITED_WIDTH } else { room }, colour) + "\n");
    drawn.collect()
}

struct ExplanationPage {
    now: Time,
    width: usize,
    /// Each line, and `true` if it must not be cut.
    lines: Vec<(StyledLine, bool)>,
}

impl ExplanationPage {
    fn add_explanation(&mut self, explained: &ObjectExplanation) {
        if !self.lines.is_empty() {
            self.lines.push((StyledLine::default(), false));
        }
        let object = &explained.object;
        let title = object_title(&object.kind, &object.namespace, &object.name);
        let head = StyledLine::new(TextStyle::Bold, title).append_text(TextStyle::Plain, "  ");
        self.lines.push((
            head.append_text(TextStyle::of_verdict(explained.verdict), explained.verdict)
                .append_text(TextStyle::Plain, format!("  {}", explained.reason.as_str())),
            false,
        ));
        self.add_wrapped("", &explained.message);
        if !explained.policy.is_empty() {
            self.add_wrapped("policy", &explained.policy);
        }
        if let Some(written) = &explained.written {
            self.add_wrapped("written", written);
        }
        self.add_since(explained.since.as_deref());
        match explained.causes.len() {
            0 => self.add_wrapped("", "no unready cause found"),
            _ => self.lines.push((StyledLine::default(), false)),
        }
        if explained.verdict == Level::Ready.as_str() && !explained.causes.is_empty() {
            self.add_wrapped("", "Nothing that counts is unready. Not ready, and not counted:");
        }
        for (at, cause) in explained.causes.iter().enumerate() {
            self.add_cause(at + 1, cause);
        }
        if explained.more > 0 {
            self.lines.push((
                StyledLine::new(
                    TextStyle::Plain,
                    format!("and {} more causes: raise --limit to show them", explained.more),
                ),
                false,
            ));
        }
        for what in &explained.not_read {
            self.add_wrapped("not read", what);
        }
    }

    fn add_cause(&mut self, number: usize, cause: &ExplainedCause) {
        let object = &cause.object;
        let title = object_title(&object.kind, &object.namespace, &object.name);
        let head = StyledLine::new(TextStyle::Bold, format!("{number}. {title}"))
            .append_text(TextStyle::Plain, "  ");
        self.lines.push((
            head.append_text(TextStyle::of_verdict(cause.verdict), cause.verdict)
                .append_text(TextStyle::Plain, format!("  {}", cause.reason.as_str())),
            false,
        ));
        self.add_wrapped("", &cause.message);
        if cause.path.len() > 1 {
            self.add_wrapped("path", &cause.path.join(" → "));
        }
        self.add_wrapped("rule", &cause.rule);
        self.add_wrapped("branch", &cause.branch);
        let values: Vec<String> =
            cause.values.iter().map(|value| format!("{} = {}", value.field, value.value)).collect();
        self.add_texts("values", &values);
        self.add_since(cause.since.as_deref());
        let owns: Vec<String> =
            cause.owns.iter().map(|owned| format!("{}: {}", owned.object, owned.says)).collect();
        self.add_texts("below", &owns);
        self.add_holders(cause);
        self.add_texts("waits for", &cause.waits_for_children);
        self.add_texts("namespace", &cause.namespace_says);
        let events: Vec<String> = cause.events.iter().map(|event| self.event_text(event)).collect();
        self.add_texts("events", &events);
        self.add_wrapped("changes", &cause.changes);
        self.add_commands("try", &cause.tries);
        self.lines.push((StyledLine::default(), false));
    }

    fn event_text(&self, event: &RecentEvent) -> String {
        let at = Time::from_rfc3339(&event.at)
            .map_or_else(|| event.at.clone(), |at| format_age(self.now.0 - at.0));
        let count = event.count.map_or(String::new(), |count| format!(" ×{count}"));
        format!(
            "{at} ago {} {}{count} {} ({}): {}",
            event.r#type, event.reason, event.about, event.from, event.message
        )
    }

    fn add_holders(&mut self, cause: &ExplainedCause) {
        for holder in &cause.holders {
            let said = [
                holder.likely.map(|likely| format!(", likely {likely}")),
                holder.manager.as_ref().map(|manager| format!(", set by field manager {manager}")),
                holder.waits_for.map(|waits| format!("; waits for: {waits}")),
            ];
            let said: String = said.into_iter().flatten().collect();
            self.add_wrapped(
                "held by",
                &format!("finalizer {}, since {}{said}", holder.finalizer, holder.since),
            );
            if let Some(signs) = &holder.signs {
                let word = match signs.state {
                    HolderState::Alive => "alive",
                    HolderState::Ownerless => "ownerless",
                    HolderState::Unknown => "not known whether it lives",
                };
                self.add_wrapped("holder", &format!("{word}: {}", signs.evidence));
            }
            self.add_commands("release", std::slice::from_ref(&holder.release));
            self.add_wrapped("warning", holder.warning);
        }
    }

    fn add_since(&mut self, since: Option<&str>) {
        let Some(since) = since else { return };
        let ago = Time::from_rfc3339(since)
            .map_or_else(String::new, |at| format!(" ({} ago)", format_age(self.now.0 - at.0)));
        self.add_wrapped("since", &format!("{since}{ago}"));
    }

    fn add_texts(&mut self, label: &str, texts: &[String]) {
        for (at, text) in texts.iter().enumerate() {
            self.add_wrapped(if at == 0 { label } else { "" }, text);
        }
    }

    /// Adds text behind a label, wrapped at the terminal's width.
    fn add_wrapped(&mut self, label: &str, text: &str) {
        for (at, part) in
            wrap_text(text, self.width - LABEL_WIDTH - 3, MAX_TEXT_LINES).into_iter().enumerate()
        {
            self.add_line(if at == 0 { label } else { "" }, part, false);
        }
    }

    /// Adds commands, which are for copying: they are not wrapped, the terminal does that better.
    fn add_commands(&mut self, label: &str, commands: &[String]) {
        for (at, command) in commands.iter().enumerate() {
            self.add_line(if at == 0 { label } else { "" }, command.clone(), true);
        }
    }

    fn add_line(&mut self, label: &str, text: String, whole: bool) {
        let line = StyledLine::new(TextStyle::Plain, "   ")
            .append_text(TextStyle::Dim, label)
            .pad_to(3 + LABEL_WIDTH);
        self.lines.push((line.append_text(TextStyle::Plain, text), whole));
    }
}

#[cfg(test)]
mod tests {
    use super::super::object_explanation::ExplainedObjectName;
    use super::*;
    use inspect::finalizer_holders::{LikelyHolder, RELEASE_WARNING};
    use inspect::holder_signs::HolderSigns;
    use readiness::Reason;
    use readiness::rollup::ParentReason;
    use rollcall_core::NodeReason;

    fn named(kind: &str, name: &str) -> ExplainedObjectName {
        let [group, kind, namespace, name] = ["", kind, "shop", name].map(str::to_owned);
        ExplainedObjectName { group, kind, namespace, name }
    }

    fn explained() -> ObjectExplanation {
        let holder = LikelyHolder {
            finalizer: "argocd.argoproj.io/hook-finalizer".to_owned(),
            since: "2026-01-01T00:00:00Z".to_owned(),
            likely: Some("Argo CD"),
            waits_for: None,
            manager: Some("argocd-controller".to_owned()),
            last_write: None,
            signs: Some(HolderSigns {
                state: HolderState::Ownerless,
                evidence: "there is no Lease and no running pod".to_owned(),
            }),
            release: "kubectl -n shop patch job.batch seed --type=json -p '[]'".to_owned(),
            warning: RELEASE_WARNING,
        };
        let cause = ExplainedCause {
            object: named("Job", "seed"),
            path: vec!["Shop books".to_owned(), "Job seed".to_owned()],
            verdict: "Stuck",
            reason: NodeReason::Object(Reason::Terminating),
            message: "finalizer \u{1b}[31mx".to_owned(),
            rule: "deletion takes precedence over every rule".to_owned(),
            branch: "metadata.deletionTimestamp is set".to_owned(),
            since: Some("2026-01-01T00:00:00Z".to_owned()),
            changes: "the controllers of its finalizers must remove them".to_owned(),
            holders: vec![holder],
            ..ExplainedCause::default()
        };
        ObjectExplanation {
            object: named("Shop", "books"),
            verdict: "Stuck",
            reason: NodeReason::Parent(ParentReason::ChildrenStuck),
            causes: vec![cause],
            ..ObjectExplanation::default()
        }
    }

    const NOW: Time = Time(1_767_225_600_000 + 300_000);

    #[test]
    fn the_story_is_told_in_order_and_commands_are_whole() {
        let drawn = render_explanations(&[explained()], NOW, false, None);
        let order =
            ["Shop shop/books", "1. Job shop/seed", "path", "rule", "branch", "since", "held by", "changes"];
        let places: Vec<_> = order.iter().map(|word| drawn.find(word)).collect();
        assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{drawn}");
        assert!(
            drawn.contains("(5m ago)")
                && drawn.contains("likely Argo CD, set by field manager argocd-controller")
                && drawn.contains("holder    ownerless: there is no Lease and no running pod")
        );
        assert!(!drawn.contains('\u{1b}') && drawn.contains("\\u{1b}[31mx"), "{drawn}");
        let narrow = render_explanations(&[explained()], NOW, false, Some(40));
        assert!(narrow.contains(&explained().causes[0].holders[0].release), "{narrow}");
        let wide = |line: &&str| line.chars().count() > 40 && !line.contains("kubectl");
        assert_eq!(narrow.lines().find(wide), None, "{narrow}");
    }
}
