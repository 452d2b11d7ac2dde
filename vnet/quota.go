package vnet

import (
	"fmt"
	"maps"
	"math"
	"strconv"
	"strings"
	"time"
)

// QuotaName is what a quota limits. The names are those of the JSON form and
// end in the unit.
type QuotaName string

// The quotas. Nodes, CPU, Memory, Bandwidth and what leads out hold at every instant of the
// windows of all live leases, booked ones too.
const (
	QuotaLeases        QuotaName = "leases"             // live ones, booked for later too
	QuotaNodes         QuotaName = "nodes"              // nodes, routers and switches
	QuotaCPU           QuotaName = "cpu_milli"          // stated by nodes
	QuotaMemory        QuotaName = "memory_bytes"       // stated by nodes
	QuotaBandwidth     QuotaName = "bandwidth_bps"      // guaranteed minima, both directions of every link added up
	QuotaBandwidthTime QuotaName = "bandwidth_time_bit" // the same times the time that it is still booked for
	QuotaWaysOut       QuotaName = "ways_out"           // routers with one: addresses outside
	QuotaPublish       QuotaName = "publish"            // ports of those addresses that lead to nodes
	QuotaExits         QuotaName = "exits"              // switches with access to one: VLANs
	QuotaJoins         QuotaName = "joins"              // nodes that machines become
	QuotaDevices       QuotaName = "devices"            // nodes that have one
	QuotaHorizon       QuotaName = "horizon_ns"         // from now to the latest start
	QuotaLength        QuotaName = "length_ns"          // of a lease
	QuotaDefaultLength QuotaName = "default_length_ns"  // of a lease that states none; without it: until released
	QuotaAsks          QuotaName = "asks_per_second"    // requests for leases and offers
)

// QuotaNames lists all, in the order in which they are shown.
var QuotaNames = []QuotaName{
	QuotaLeases, QuotaNodes, QuotaCPU, QuotaMemory, QuotaBandwidth, QuotaBandwidthTime,
	QuotaWaysOut, QuotaPublish, QuotaExits, QuotaJoins, QuotaDevices,
	QuotaHorizon, QuotaLength, QuotaDefaultLength, QuotaAsks,
}

// Unlimited stands for a quota that is lifted.
const Unlimited int64 = math.MaxInt64

// Quota is limits by name. One that is missing is not limited.
type Quota map[QuotaName]int64

// Over returns the quota with what it leaves out taken from another.
func (q Quota) Over(other Quota) Quota {
	merged := maps.Clone(other)
	if merged == nil {
		merged = make(Quota)
	}
	maps.Copy(merged, q)
	return merged
}

// Limited leaves out what is Unlimited.
func (q Quota) Limited() Quota {
	limited := make(Quota)
	for name, limit := range q {
		if limit != Unlimited {
			limited[name] = limit
		}
	}
	return limited
}

// Word is the quota's name in policy files.
func (n QuotaName) Word() string {
	word := string(n)
	for _, unit := range []string{"_milli", "_bytes", "_bps", "_bit", "_ns"} {
		word = strings.TrimSuffix(word, unit)
	}
	return word
}

// Format prints an amount in the unit of the quota, as policy files state it.
func (n QuotaName) Format(amount int64) string {
	if amount == Unlimited {
		return "unlimited"
	}
	switch n {
	case QuotaCPU:
		return CPU(amount).String()
	case QuotaMemory:
		return Bytes(amount).String()
	case QuotaBandwidth:
		return Rate(amount).String()
	case QuotaBandwidthTime:
		return FormatBandwidthTime(amount)
	case QuotaHorizon, QuotaLength, QuotaDefaultLength:
		return FormatDuration(time.Duration(amount))
	}
	return strconv.FormatInt(amount, 10)
}

// ParseBandwidthTime reads a product of a rate and a time, such as 10Gbit*h or
// 2Mbit*36h, in bits.
func ParseBandwidthTime(s string) (int64, error) {
	wrong := fmt.Errorf("%q is not a rate times a time such as 10Gbit*h or 2Mbit*36h", s)
	rate, length, found := strings.Cut(strings.ReplaceAll(s, " ", ""), "*")
	if !found || length == "" {
		return 0, wrong
	}
	if !isNumeric(length[0]) {
		length = "1" + length
	}
	r, err := ParseRate(rate)
	if err != nil {
		return 0, wrong
	}
	d, err := ParseDuration(length)
	if err != nil {
		return 0, wrong
	}
	return BandwidthTime(r, d), nil
}

// BandwidthTime is the bits of a rate during a time, rounded up; what exceeds
// the range is the largest number that is not Unlimited.
func BandwidthTime(r Rate, d time.Duration) int64 {
	bits := math.Ceil(float64(r) * d.Seconds())
	if bits >= math.MaxInt64 {
		return Unlimited - 1
	}
	return int64(bits)
}

// FormatBandwidthTime prints bits as a rate times hours, to four digits where
// the product is not exact.
func FormatBandwidthTime(bits int64) string {
	if bits%3600 == 0 {
		return Rate(bits/3600).String() + "*h"
	}
	x, unit := float64(bits)/3600, 0
	units := []string{"bit", "kbit", "Mbit", "Gbit", "Tbit"}
	for x >= 1000 && unit < len(units)-1 {
		x, unit = x/1000, unit+1
	}
	return strconv.FormatFloat(x, 'g', 4, 64) + units[unit] + "*h"
}
