package report

import "net/netip"

// Learned is a way of a route that a router's daemons have learned. Several of one
// prefix are one route.
type Learned struct {
	Prefix    netip.Prefix `json:"prefix"`
	Via       netip.Addr   `json:"via"`
	Interface string       `json:"interface"`
}

// MostLearned bounds the ways that a router takes along to another host.
const MostLearned = 1 << 16
