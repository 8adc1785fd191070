//! The workloads, their sizes, and the laws of their figures.

use clap::ValueEnum;

use super::law::{COUNT_NOISE, FigureNoise, MEMORY_NOISE, PROCESSOR_NOISE, RATIO_NOISE};

/// Most memory that may be taken at any time, as a multiple of the memory at rest.
const MAX_PEAK: f64 = 1.5;

/// A workload that is run at several sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum GrowthWorkload {
    Children,
    LargeChildren,
    Firehose,
    Burst,
    Unready,
    Depth,
    FanOut,
    Parents,
    Edits,
    Policies,
}

/// A figure, and the law that it keeps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GrowthFigure {
    /// Its name in the raw data.
    pub(crate) name: &'static str,
    /// Its heading, with the unit.
    pub(crate) heading: &'static str,
    /// Exponent with which it may grow with the size.
    pub(crate) exponent: Option<f64>,
    /// Largest value at any size.
    pub(crate) ceiling: Option<f64>,
    pub(crate) noise: FigureNoise,
    /// It is a time on the wall, which depends on what else the machine does.
    pub(crate) is_wall_time: bool,
}

/// What a workload is.
pub(crate) struct GrowthView {
    /// Its name in the raw data and on the command line.
    pub(crate) name: &'static str,
    /// What its size counts.
    pub(crate) unit: &'static str,
    pub(crate) about: &'static str,
    /// Sizes of every run, and then those of `--largest`.
    pub(crate) sizes: &'static [usize],
    pub(crate) largest: &'static [usize],
    pub(crate) figures: &'static [GrowthFigure],
}

/// One that is only shown.
const fn shown(name: &'static str, heading: &'static str) -> GrowthFigure {
    GrowthFigure { name, heading, exponent: None, ceiling: None, noise: RATIO_NOISE, is_wall_time: false }
}

/// A time on the wall, or a rate over it, which is only shown.
const fn wall_time(name: &'static str, heading: &'static str) -> GrowthFigure {
    GrowthFigure { is_wall_time: true, ..shown(name, heading) }
}

/// What an event costs.
const fn rate(name: &'static str, heading: &'static str, exponent: f64) -> GrowthFigure {
    GrowthFigure { exponent: Some(exponent), ..shown(name, heading) }
}

const fn processor(name: &'static str, heading: &'static str, exponent: f64) -> GrowthFigure {
    GrowthFigure { noise: PROCESSOR_NOISE, ..rate(name, heading, exponent) }
}

const fn memory(name: &'static str, heading: &'static str, exponent: f64) -> GrowthFigure {
    GrowthFigure { noise: MEMORY_NOISE, ..rate(name, heading, exponent) }
}

const fn number(name: &'static str, heading: &'static str, exponent: f64) -> GrowthFigure {
    GrowthFigure { noise: COUNT_NOISE, ..rate(name, heading, exponent) }
}

/// One that has no law of growth, but a largest value.
const fn bounded(name: &'static str, heading: &'static str, ceiling: f64) -> GrowthFigure {
    GrowthFigure { ceiling: Some(ceiling), ..shown(name, heading) }
}

const CHILD_FIGURES: [GrowthFigure; 15] = [
    memory("rest_mb", "at rest: memory above an empty service, MB", 1.0),
    shown("rest_bytes_per_child", "at rest: memory of a child, bytes"),
    bounded("rest_ratio", "at rest: as a multiple of small children", 1.1),
    processor("start_processor_s", "first start: processor, s", 1.0),
    shown("start_us_per_child", "first start: processor per child, µs"),
    bounded("start_peak_over_rest", "first start: peak over rest", MAX_PEAK),
    processor("outage_processor_s", "API server restarted: processor, s", 1.0),
    // A list that takes longer than two minutes is no sight: parents are told Unknown, which is counted as needless.
    wall_time("outage_listed_s", "API server restarted: until all is listed, s"),
    bounded("outage_peak_over_rest", "API server restarted: peak over rest", MAX_PEAK),
    number("outage_requests", "API server restarted: requests", 1.0),
    bounded("outage_writes", "API server restarted: needless writes", 0.0),
    processor("restart_processor_s", "later start: processor, s", 1.0),
    shown("restart_us_per_child", "later start: processor per child, µs"),
    bounded("restart_peak_over_rest", "later start: peak over rest", MAX_PEAK),
    bounded("restart_writes", "later start: needless writes", 0.0),
];

const CASCADE_NOTE: &str = "writes per flip";

impl GrowthWorkload {
    /// All of them, in the order of a run.
    pub(crate) const ALL: [GrowthWorkload; 10] = [
        GrowthWorkload::Children,
        GrowthWorkload::LargeChildren,
        GrowthWorkload::Firehose,
        GrowthWorkload::Burst,
        GrowthWorkload::Unready,
        GrowthWorkload::Depth,
        GrowthWorkload::FanOut,
        GrowthWorkload::Parents,
        GrowthWorkload::Edits,
        GrowthWorkload::Policies,
    ];

    /// What it is, and which figures it has.
    pub(crate) fn view(self) -> &'static GrowthView {
        match self {
            GrowthWorkload::Children => &CHILDREN,
            GrowthWorkload::LargeChildren => &LARGE_CHILDREN,
            GrowthWorkload::Firehose => &FIREHOSE,
            GrowthWorkload::Burst => &BURST,
            GrowthWorkload::Unready => &UNREADY,
            GrowthWorkload::Depth => &DEPTH,
            GrowthWorkload::FanOut => &FAN_OUT,
            GrowthWorkload::Parents => &PARENTS,
            GrowthWorkload::Edits => &EDITS,
            GrowthWorkload::Policies => &POLICIES,
        }
    }
}

static CHILDREN: GrowthView = GrowthView {
    name: "children",
    unit: "children",
    about: "Ten children of 0.8 kB each under every parent. The process starts over parents that nobody has told anything, rests, sees the API server restarted (connections end, all fails for a second, nothing can be resumed), and is started again.",
    sizes: &[10_000, 100_000],
    largest: &[1_000_000],
    figures: &CHILD_FIGURES,
};

static LARGE_CHILDREN: GrowthView = GrowthView {
    name: "large-children",
    unit: "children",
    about: "The same with children of 7.8 kB, which must take no more memory at rest. A million of them do not fit into the server of this benchmark.",
    sizes: &[10_000, 100_000],
    largest: &[],
    figures: &CHILD_FIGURES,
};

static FIREHOSE: GrowthView = GrowthView {
    name: "firehose",
    unit: "events",
    about: "10,000 children of 1,000 parents change as fast as the server can send, 20,000 at a time; one change in ten turns a child.",
    sizes: &[10_000, 100_000],
    largest: &[1_000_000],
    figures: &[
        processor("processor_s", "processor, s", 1.0),
        shown("us_per_event", "processor per event, µs"),
        memory("peak_mb", "peak memory, MB", 0.0),
        shown("peak_over_rest", "peak over rest"),
        number("writes", "writes to parents", 1.0),
        wall_time("events_per_second", "events a second"),
    ],
};

static BURST: GrowthView = GrowthView {
    name: "burst",
    unit: "children",
    about: "All children of some parents, ten each, turn three times within a second; none is ready at the end.",
    sizes: &[50, 500],
    largest: &[5_000],
    figures: &[
        number("writes", "writes to parents", 1.0),
        shown("writes_per_parent", "writes per parent"),
        processor("processor_s", "processor, s", 1.0),
        shown("us_per_turn", "processor per turn, µs"),
        wall_time("settled_s", "last turn to last answer, s"),
    ],
};

static UNREADY: GrowthView = GrowthView {
    name: "unready",
    unit: "parents not ready",
    about: "Nothing happens for a minute, beside 100 parents that are ready. What is not ready is read again every 30 s. All sizes run side by side, each over a server of its own.",
    sizes: &[0, 10, 1_000],
    largest: &[10_000],
    figures: &[
        number("requests_per_minute", "requests a minute, without a lease's", 1.0),
        shown("event_requests_per_minute", "of them to create Events"),
        processor("processor_s_per_minute", "processor, s a minute", 1.0),
        bounded("writes_per_minute", "writes to parents a minute", 0.0),
    ],
};

static DEPTH: GrowthView = GrowthView {
    name: "depth",
    unit: "levels of parents",
    about: "Parents that are children of parents, two under each, and a child at the bottom that turns: how dear it is to tell the root.",
    sizes: &[2, 4, 8],
    largest: &[],
    figures: &[
        rate("writes_per_flip", CASCADE_NOTE, 1.0),
        rate("processor_ms_per_flip", "processor per flip, ms", 1.0),
        wall_time("p50_ms", "leaf to root p50, ms"),
        wall_time("max_ms", "leaf to root at most, ms"),
    ],
};

static FAN_OUT: GrowthView = GrowthView {
    name: "fan-out",
    unit: "children of the root",
    about: "Two levels of parents: a root with so many children, each a parent of one child. One of these turns.",
    sizes: &[10, 100, 1_000],
    largest: &[10_000],
    figures: &[
        rate("writes_per_flip", CASCADE_NOTE, 0.0),
        rate("processor_ms_per_flip", "processor per flip, ms", 0.0),
        wall_time("p50_ms", "leaf to root p50, ms"),
        wall_time("max_ms", "leaf to root at most, ms"),
    ],
};

static PARENTS: GrowthView = GrowthView {
    name: "parents",
    unit: "parents",
    about: "Parents with two pods each, of which two flip a second.",
    sizes: &[1_000, 10_000],
    largest: &[100_000],
    figures: &[
        rate("processor_ms_per_flip", "processor per flip, ms", 0.0),
        processor("idle_s_per_minute", "processor while nothing happens, s a minute", 1.0),
    ],
};

static EDITS: GrowthView = GrowthView {
    name: "edits",
    unit: "parents",
    about: "Parents with two pods each, whose rule is edited ten times; no answer moves.",
    sizes: &[1_000, 10_000],
    largest: &[100_000],
    figures: &[
        bounded("peak_over_rest", "peak over rest", MAX_PEAK),
        bounded("lasting_over_rest", "memory afterwards over rest", 1.1),
        processor("processor_s", "processor, s", 1.0),
        shown("us_per_child", "processor per child and edit, µs"),
    ],
};

static POLICIES: GrowthView = GrowthView {
    name: "policies",
    unit: "policies",
    about: "Policies that share 3,000 parents of one kind, with two children each, out among them by a label; 20 children flip a second.",
    sizes: &[1, 10, 100],
    largest: &[300],
    figures: &[
        rate("processor_ms_per_flip", "processor per flip, ms", 0.0),
        memory("rest_mb", "memory above an empty service, MB", 1.0),
        shown("kb_per_policy", "memory of a policy more, kB"),
        shown("start_processor_s", "start: processor, s"),
    ],
};
