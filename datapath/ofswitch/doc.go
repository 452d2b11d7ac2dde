// Package ofswitch is an OpenFlow switch on devices of the machine: one process,
// one thread, packet sockets.
//
//	controllers -> channel.Hub -> Switch.Run -> pipeline.Switch -> devices
//
// The thread takes messages of controllers and frames of devices in turns. A
// message is done before the next frame is taken through the tables, so a
// barrier's reply is true when it is written.
//
// TCP segments that senders leave to be cut (GSO) pass whole, with what the
// kernel needs to cut them later. Checksums that they leave undone are finished,
// but for those segments. It is no part of an agent: `sublet openflow run` starts it.
package ofswitch
