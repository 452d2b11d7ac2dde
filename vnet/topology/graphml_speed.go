package topology

import (
	"regexp"
	"strconv"
	"strings"

	"sublet/vnet"
)

// capacity is an edge's speed, or what is taken for one that is unknown.
func capacity(e item, notes *notes) vnet.Rate {
	if rate := speed(e, notes); rate > 0 {
		return rate
	}
	notes.add("links of unknown speed, taken for " + unknownSpeed.String())
	return unknownSpeed
}

// speedWords are the attributes that state speeds.
var speedWords = []string{"LinkSpeedRaw", "LinkSpeed", "LinkSpeedUnits", "LinkLabel"}

// speed is what LinkSpeedRaw (bit/s) says, else LinkSpeed and its units, else
// the label; of a range its lower end. 0: nothing.
func speed(e item, notes *notes) vnet.Rate {
	low, _ := speeds(e, notes)
	return low
}

// speeds are the ends of what speed reads, which are equal but of a range.
func speeds(e item, notes *notes) (low, high vnet.Rate) {
	raw, err := strconv.ParseFloat(strings.TrimSpace(e.data["LinkSpeedRaw"]), 64)
	most := raw
	if err != nil || !(raw > 0) {
		raw, most = span(e.data["LinkSpeed"] + " " + e.data["LinkSpeedUnits"])
	}
	if raw <= 0 {
		if raw, most = span(e.data["LinkLabel"]); raw > 0 {
			notes.add("links whose speed is in their label")
		}
	}
	if !(raw > 0) {
		return 0, 0
	}
	if most > raw {
		notes.add("links whose speed is a range, of which its lower end")
	}
	return rate(raw), rate(most)
}

// rate is what a request can state that is nearest to one.
func rate(bits float64) vnet.Rate {
	return vnet.Rate(min(max(bits, float64(vnet.MinRate)), float64(vnet.MaxRate)))
}

// Speed reads a speed as labels state it, such as "155 Mbps" or "OC-192c"; of a
// range its lower end. 0: there is none.
func Speed(label string) vnet.Rate {
	if low, _ := span(label); low > 0 {
		return rate(low)
	}
	return 0
}

// between is a range of two numbers, of which the first may have the second's unit.
var between = regexp.MustCompile(`(?i)^([^0-9]*)([0-9][0-9.,]*) ?([kmgt][a-z/]*)? ?(?:-|–|to|\.\.) ?([0-9][0-9.,]*)( ?[kmgt].*)$`)

// span reads a label that may state a range.
func span(label string) (low, high float64) {
	if m := between.FindStringSubmatch(strings.TrimSpace(label)); m != nil {
		unit := m[3]
		if unit == "" {
			unit = m[5]
		}
		low, high = labelled(m[2]+unit), labelled(m[4]+m[5])
		if low > 0 && low < high {
			return low, high
		}
		return high, high
	}
	low = labelled(label)
	return low, low
}

// How labels state speeds: a number with a unit of bits, an optical carrier
// of SONET (OC-n is n times 51.84 Mbit/s, ANSI T1.105) or SDH (STM-n is n
// times 155.52 Mbit/s, ITU-T G.707), a level of the digital hierarchies
// (ITU-T G.702) or a kind of Ethernet. Before each may stand how many run in
// parallel; n of them are one.
var (
	parallel  = `(?i)(?:\b(\d{1,3}) ?[x*×] ?|\bn ?[x*×] ?|(?:^|[^a-z0-9.,]))`
	inBits    = regexp.MustCompile(parallel + `(\d{1,3}(?:,\d{3})+|\d{1,6}(?:[.,]\d{1,3})?)[ -]?([kmgt]) ?(?:b(?:e|it|its)?|i?ge?|e|ig(?:abits?|e)?|egabits?|ilobits?|bytes?)?[ -]?(?:/s(?:ec)?|ps| ?per second)?(?: ?ethernet)?(?:$|[^a-z0-9])`)
	optical   = regexp.MustCompile(parallel + `(oc|stm|sts)[- ]?(\d{1,4})c?(?:$|[^a-z0-9])`)
	hierarchy = regexp.MustCompile(parallel + `(ds-?[013]|t-?[13]|e-?[134])(?:$|[^a-z0-9])`)
	ethernet  = regexp.MustCompile(parallel + `(gig(?:abit)?[- ]?e(?:thernet)?|ge|fast[- ]?ethernet|fe)(?:$|[^a-z0-9])`)
	base      = regexp.MustCompile(parallel + `(\d{1,4}(?:\.\d)?)(g?)-?base-?[a-z]`)
)

var carriers = map[string]float64{"oc": 51.84e6, "sts": 51.84e6, "stm": 155.52e6}

var levels = map[string]float64{
	"ds0": 64e3, "ds1": 1.544e6, "ds3": 44.736e6, "t1": 1.544e6, "t3": 44.736e6,
	"e1": 2.048e6, "e3": 34.368e6, "e4": 139.264e6,
}

var prefixes = map[string]float64{"k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}

// labelled reads the speed that a label states, in bit/s; 0: none.
func labelled(label string) float64 {
	if m := inBits.FindStringSubmatch(label); m != nil {
		return number(m[1]) * quantity(m[2], m[3]) * prefixes[strings.ToLower(m[3])]
	}
	if m := base.FindStringSubmatch(label); m != nil {
		if m[3] != "" {
			return number(m[1]) * number(m[2]) * 1e9
		}
		return number(m[1]) * number(m[2]) * 1e6
	}
	if m := optical.FindStringSubmatch(label); m != nil {
		return number(m[1]) * number(m[3]) * carriers[strings.ToLower(m[2])]
	}
	if m := hierarchy.FindStringSubmatch(label); m != nil {
		return number(m[1]) * levels[strings.Replace(strings.ToLower(m[2]), "-", "", 1)]
	}
	if m := ethernet.FindStringSubmatch(label); m != nil {
		if strings.HasPrefix(strings.ToLower(m[2]), "f") {
			return number(m[1]) * 100e6
		}
		return number(m[1]) * 1e9
	}
	return 0
}

// number reads one, with a comma or a point; nothing at all is one.
func number(text string) float64 {
	n, err := strconv.ParseFloat(strings.Replace(text, ",", ".", 1), 64)
	if err != nil {
		return 1
	}
	return n
}

// quantity reads a number of a unit. Three digits behind a comma are thousands of
// kbit and Mbit, such as 1,000 Mbps, and parts of Gbit, such as 2,488 Gbit/s.
func quantity(text, unit string) float64 {
	_, behind, found := strings.Cut(text, ",")
	if found && len(behind) >= 3 && strings.ContainsAny(unit, "kKmM") {
		return number(strings.ReplaceAll(text, ",", ""))
	}
	return number(text)
}
