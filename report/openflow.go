package report

import (
	"errors"
	"time"

	"sublet/vnet"
)

// ErrNoPort is of a question about a port that an OpenFlow switch has not.
var ErrNoPort = errors.New("no such port")

// OpenFlowStatus is what an OpenFlow switch tells of itself beside its entries.
type OpenFlowStatus struct {
	Datapath string `json:"datapath"` // process or kernel
	// Core is the one that the process is kept on, and Used what it uses of it; nil: it is
	// on no core of its own.
	Core        *int                 `json:"core,omitempty"`
	Used        vnet.CPU             `json:"used_milli,omitempty"`
	Controllers []OpenFlowController `json:"controllers"`
	Standalone  bool                 `json:"standalone"` // no controller is connected, and it forwards as a learning switch
	Entries     Share                `json:"entries"`
	Groups      Share                `json:"groups"`
	Meters      Share                `json:"meters"`
	PacketIns   PacketIns            `json:"packet_ins"`
	Stages      StageTimes           `json:"stages"`
	Slices      []OpenFlowSlice      `json:"slices,omitempty"` // none: the controllers have the whole switch
}

// OpenFlowSlice is the part of a switch that some controllers have.
type OpenFlowSlice struct {
	Name       string `json:"name"`
	FirstTable int    `json:"first_table"` // of the switch, which its controllers know as 0
	Tables     int    `json:"tables"`
	Entries    Share  `json:"entries"`
	Groups     Share  `json:"groups"`
	Meters     Share  `json:"meters"`
}

// OpenFlowController is a controller of a switch: one that it is to connect to, or one
// that has connected to it.
type OpenFlowController struct {
	Target    string `json:"target"`          // tcp:ADDRESS:PORT, or ssl, ptcp, pssl
	Slice     string `json:"slice,omitempty"` // of which it is the controller
	Connected bool   `json:"connected"`
	Role      string `json:"role,omitempty"` // equal, master or slave
	Version   string `json:"version,omitempty"`
	For       int64  `json:"for_ns,omitempty"`    // how long it has been connected
	Auxiliary int    `json:"auxiliary,omitempty"` // auxiliary connections beside the main one that stand
	Unread    uint64 `json:"unread,omitempty"`    // packet-ins that were lost because it does not read
	Why       string `json:"why,omitempty"`       // why the last try, or connection, ended
}

// Share is how much there is of what is bounded.
type Share struct {
	Used int `json:"used"`
	Most int `json:"most"`
}

// PacketIns are packets to controllers.
type PacketIns struct {
	Sent     uint64 `json:"sent"`
	OverRate uint64 `json:"over_rate"` // dropped because more came than packet_in_pps allows
}

// StageTimes is where the time of a switch's thread goes, in the terms of the time
// model of software switches (Zhao, thesis, section 3.3): sums over the turns of its
// loop that were timed, one in many. What the thread slept is not counted.
type StageTimes struct {
	Polling  time.Duration `json:"polling_ns"`  // looking which ports have frames
	IO       time.Duration `json:"io_ns"`       // reading and writing them
	Rules    time.Duration `json:"rules_ns"`    // finding the entries that decide
	Actions  time.Duration `json:"actions_ns"`  // what these say
	Overhead time.Duration `json:"overhead_ns"` // the rest: controllers' messages, ports, the loop itself
	Frames   uint64        `json:"frames"`      // that were read in them
}
