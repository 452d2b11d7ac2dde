package vxswitch

// A Scheduler chooses which of n entries an output serves next: at the host's
// level entries are virtual switches, at a virtual switch's level its inputs.
// One kind serves both levels.
//
// The engine tells it when an entry may be served and when not (Wake, Sleep),
// asks with Pick and says what was sent. All calls must be O(log n) or better
// and must not allocate.
//
// A scheduler is its tenant's choice and is not believed. A Pick of an entry
// that is not awake is counted (Counters.Faults) and answered by round robin
// among the awake ones; one that answers Nobody waits until its next frame or
// its Retry; neither changes what the neighbours get.
type Scheduler interface {
	// Wake says that entry i, asleep until now, has something to send.
	Wake(i int)
	// Sleep says that entry i, awake until now, has nothing to send any
	// more or must not send now.
	Sleep(i int)
	// Changed says that what awake entry i has queued is no longer what it
	// was: a frame was added behind, or one was dropped.
	Changed(i int)
	// Pick returns the awake entry whose head is to be sent now, or Nobody.
	// Asked again before Sent it answers the same unless entries changed.
	Pick(now Time) int
	// Sent says that the head of entry i, size bytes, has left. If i has
	// nothing left, Sleep follows.
	Sent(i, size int)
}

// Nobody is Pick's answer for "none now".
const Nobody = -1

// A Retrier is a Scheduler that may answer Nobody though entries are awake
// and wants to be asked again at a time of its own.
type Retrier interface {
	// Retry is called after Pick answered Nobody. Forever: when something arrives.
	Retry() Time
}

// Bounded marks a SchedulerKind whose calls are known to be short, as those of
// package sched are: they are not measured by Config.Clock.
type Bounded interface{ Bounded() }

// Entries is what a scheduler sees of its entries.
type Entries interface {
	// Size is the size of the head of awake entry i. At the host's level it
	// is the frame that i's own scheduler offers; 0: it offers none, and
	// picking i is harmless.
	Size(i int) int
	// Head is a copy of the head of awake entry i.
	Head(i int) Packet
	// Backlog is the bytes queued in entry i.
	Backlog(i int) int
	// Quantum is entry i's weight in bytes, at least 1.
	Quantum(i int) int
	// Priority is entry i's priority, 0 to MaxPriority-1, 0 highest.
	Priority(i int) int
}

// SchedulerKind makes schedulers of one kind. See package sched.
type SchedulerKind interface {
	// New returns a scheduler of n entries, all asleep.
	New(n int, e Entries) Scheduler
	// String is the kind's name as configurations write it.
	String() string
}
