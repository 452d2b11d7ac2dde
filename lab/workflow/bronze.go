// Package workflow runs an application in a lab: data moves over leased links and is
// worked on, stage by stage, and what is leased decides how long it all takes.
//
// The application is that of Anhalt (thesis, section 6.3.3): registration of medical
// images in three stages by 30 virtual machines. What it did is known by its times.
// So it is played: transfers are real, what was computed is waited for.
package workflow

import (
	"time"

	"sublet/vnet"
)

// Stage is what every worker does before the next stage begins: it fetches its data
// from its source, works, and sends as much back.
type Stage struct {
	Name    string
	Fixed   time.Duration // of a transfer, whatever the rate
	Bits    float64       // of a transfer on the link, on average over the workers
	Spread  float64       // of sizes, as a part of that: their standard deviation
	Compute time.Duration
}

// Bronze is the published application. Fixed and Bits are the line through the
// published times of a transfer at 1 and 10 Mbit/s. Spread is the published one at
// 1 Mbit/s, where the rate is all that matters. Of the 890 s that are no transfers
// the stages' parts are those of the published cost of bandwidth in the second row.
var Bronze = []Stage{
	{"match", 9480 * time.Millisecond, 213.1e6, 0.012, 60 * time.Second},
	{"register", 12250 * time.Millisecond, 304.3e6, 0.133, 830 * time.Second},
	{"refine", 890 * time.Millisecond, 2.02e6, 0.25, 0},
}

// Allocation is what is leased for each link in each stage.
type Allocation struct {
	Name      string
	Rates     []vnet.Rate
	Published Published
}

// Published is a row of table 6.1.
type Published struct {
	Transfer  []float64 `json:"transfer_s"`
	Makespan  float64   `json:"makespan_min"`
	Spread    float64   `json:"makespan_sd_min"`
	Resource  float64   `json:"cost_c_r"` // 1e5
	Bandwidth float64   `json:"cost_c_b"` // 1e5
}

// Allocations are the published ones.
var Allocations = []Allocation{
	{"worst", []vnet.Rate{vnet.Mbit, vnet.Mbit, vnet.Mbit}, Published{[]float64{222.59, 316.57, 2.91}, 34.78, 0.67, 0.65, 0.31}},
	{"optimised", []vnet.Rate{4900 * vnet.Kbit, 1950 * vnet.Kbit, 3870 * vnet.Kbit}, Published{[]float64{53.8, 171.72, 1.53}, 22.93, 0.58, 0.42, 0.48}},
	{"best", []vnet.Rate{10 * vnet.Mbit, 10 * vnet.Mbit, 10 * vnet.Mbit}, Published{[]float64{30.79, 42.68, 1.09}, 17.72, 0.23, 0.33, 1.61}},
}

// Pairs are the links of the application, each from a source to a worker. With the
// engine, which has no link, they make its 31 resources.
const Pairs = 15

// Scale makes the application small enough for a lab: it lasts a part of the time and
// has links that are some times as fast, so data shrinks by Time over Rate.
type Scale struct {
	Time float64
	Rate int
}

func (s Scale) shrink(d time.Duration) time.Duration { return time.Duration(float64(d) / s.Time) }

// payload is how many bytes a program sends so that these bits cross a link: rates are
// of Ethernet frames, which have 1448 bytes of TCP in 1514.
func (s Scale) payload(bits float64) int64 {
	return int64(max(1, bits*float64(s.Rate)/s.Time/8*1448/1514))
}

func (s Scale) rate(r vnet.Rate) vnet.Rate { return r * vnet.Rate(s.Rate) }
