// Package pipeline is the OpenFlow switch without ports and without a clock:
// flow tables, groups, meters, and what they do to packets.
//
// A Switch is driven by one caller: Receive takes a frame, Do a controller's
// message, Expire the passing of time. What comes of them goes to a Sink before
// they return, so whatever was changed holds for the next frame. Times are in
// nanoseconds on a clock of the caller's that does not go back.
//
// Where the specification leaves a choice: a miss without a table-miss entry
// drops the packet, also after a goto. Of entries of one priority that match,
// the older one decides. Byte counts are of the packet as it reached the table.
// A packet of which a controller wants less than all is kept for it: the last 256.
package pipeline
