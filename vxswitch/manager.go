package vxswitch

// A Manager is the queue manager of one VXB. It is asked on arrival, before
// the room in the buffer is looked at, and again for the head when it is
// about to depart. Frames for which there is no room are dropped by the
// engine; a manager needs not care. Calls must be O(1) and must not allocate.
type Manager interface {
	// Accept says whether an arriving frame of size bytes may be queued.
	Accept(now Time, q Occupancy, size int) bool
	// Keep says whether the head frame, queued since at, is sent; else it is
	// dropped (Late) and Keep is asked for the next one. q counts the head.
	Keep(now, at Time, q Occupancy, size int) bool
}

// Occupancy is the state of a VXB.
type Occupancy struct {
	Bytes   int // queued
	Packets int // queued
	Limit   int // b_ij^k
}

// ManagerKind makes managers of one kind. See package sched.
type ManagerKind interface {
	// New returns a manager for one VXB of size bytes that is drained at
	// rate bit/s when it is served alone; seed is its own.
	New(size int, rate int64, seed uint64) Manager
	String() string
}
