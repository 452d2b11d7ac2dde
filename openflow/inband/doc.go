// Package inband is control of OpenFlow switches that shares ports and links with
// data: which frames are control (Filter), and how they reach a controller without
// one (Bridge). A switch asks it before its tables, whether a controller is connected
// or not, so no entry drops, sees or changes control, and none makes a packet-in of it.
//
// Frames of control are: TCP to and from the address and port of a controller, and
// ARP and neighbour discovery about the address of a controller or of a gateway by
// which it is reached. Of both all switches are told the same, so each carries the
// control of the others, and none needs a controller's application to join.
package inband
