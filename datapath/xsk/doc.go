// Package xsk carries frames of a device by AF_XDP sockets: they pass between a
// queue of the device and memory of this process. What offload leaves undone is
// done here, since such sockets have no words for it: checksums are finished, and
// segments cut.
package xsk
