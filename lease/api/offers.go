package api

import (
	"sublet/vnet"
)

// Proposal is what would come of a request: a quote or a refusal, and the
// calendar around it.
type Proposal struct {
	Admitted bool            `json:"admitted"`
	Taken    bool            `json:"taken,omitempty"` // a lease has this name: the answer is for the same network under another
	Quote    *vnet.Quote     `json:"quote,omitempty"`
	Refusal  *vnet.Rejection `json:"refusal,omitempty"`
	Calendar Calendar        `json:"calendar"`
}

// Calendar is what is booked of every substrate link and host during a window.
type Calendar struct {
	Window vnet.Window     `json:"window"`
	Loads  []vnet.Load     `json:"loads"`
	Hosts  []vnet.HostLoad `json:"hosts"`
	// Outside are the loads of ways out and exits.
	Outside []vnet.Load `json:"outside,omitempty"`
	// Maintenance is what is planned in the window.
	Maintenance []vnet.Maintenance `json:"maintenance,omitempty"`
}
