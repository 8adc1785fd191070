//! The judges, who share nothing with the product but the terms: what was shown to it, what may be said of that, and the
//! invariants. They change nothing; each looks at a [`JudgedMoment`].

mod answer_agreement;
mod answer_judge;
mod checked_generation;
mod checked_parents;
mod commit_judge;
mod end_answers;
mod judged_moment;
mod jury;
mod kstatus_reader;
mod naive_deletion;
mod naive_judge;
mod naive_words;
mod number_judge;
mod overlap_judge;
mod own_entries;
mod plan_watch;
mod policy_checks;
mod quote_checks;
mod reader_judge;
mod shared_parents;
mod shown_objects;
mod store_oracle;
mod store_shortfall;
mod stored_objects;
mod words_judge;
mod write_checks;
mod write_troubles;

use answer_judge::AnswerJudge;
pub(crate) use checked_generation::{BLIND_LIMIT, MAX_ANSWER_LAG_MS};
use checked_parents::CheckedParents;
use commit_judge::CommitJudge;
pub(crate) use end_answers::describe_answers;
use judged_moment::JudgedMoment;
pub(crate) use judged_moment::JudgedScene;
pub(crate) use jury::Jury;
use number_judge::NumberJudge;
use overlap_judge::OverlapJudge;
use plan_watch::PlanWatch;
use reader_judge::ReaderJudge;
pub(crate) use shown_objects::{ShownMoment, ShownObjects};
use store_oracle::check_end;
use words_judge::WordsJudge;
use write_checks::check_decision;
use write_troubles::WriteTroubles;
