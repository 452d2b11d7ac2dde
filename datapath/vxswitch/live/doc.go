// Package live drives VxSwitch on real ports: one process is one hosting
// switch, one thread of it carries every frame from read to write.
//
//	epoll -> read a few frames of each port that has some
//	           -> lookups, queue (package vxswitch, in real time)
//	      -> what may leave by now -> write
//
// TAP devices are read and written together by an io_uring: what the frames of a
// round cause to be sent goes with the reads of the next one, in one call.
// Packet sockets have receive rings, which whoever sends fills, and what a round
// sends by one of them is written by one call.
//
// A round reads at most a few frames of a port, so that a port that is always
// full costs the others no more than that. Rates do not depend on how often
// the loop comes round: the engine decides at the times its lines are free,
// also when it is asked later.
//
// Ports are TAP devices (a virtual node's own interface), and packet sockets or
// AF_XDP sockets on devices that are there (a physical one, or a veth). The
// first two pass frames with virtio headers, so TCP and UDP segments of up to
// 64 KB stay whole; they count as what they are on a wire, every segment with
// its headers. AF_XDP sockets carry frames only: cheaper small ones, no
// segments. What comes whole from another port is cut for them, and checksums
// that senders leave undone are finished on the way.
//
// An input's capacity is held, not policed, where one virtual switch has the
// port for itself: the loop does not read what may not come in yet, and the
// device's queue fills as a slower cable's would.
package live
