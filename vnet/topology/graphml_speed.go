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
// the label; 0: nothing.
func speed(e item, notes *notes) vnet.Rate {
	raw, err := strconv.ParseFloat(strings.TrimSpace(e.data["LinkSpeedRaw"]), 64)
	if err != nil || !(raw > 0) {
		raw = labelled(e.data["LinkSpeed"] + " " + e.data["LinkSpeedUnits"])
	}
	if raw <= 0 {
		if raw = labelled(e.data["LinkLabel"]); raw > 0 {
			notes.add("links whose speed is in their label")
		}
	}
	if !(raw > 0) {
		return 0
	}
	return vnet.Rate(min(max(raw, float64(vnet.MinRate)), float64(vnet.MaxRate)))
}

// How labels state speeds: a number with a unit of bits, an optical carrier
// of SONET (OC-n is n times 51.84 Mbit/s, ANSI T1.105) or SDH (STM-n is n
// times 155.52 Mbit/s, ITU-T G.707), a level of the digital hierarchies
// (ITU-T G.702) or a kind of Ethernet. Before each may stand how many run in
// parallel.
var (
	parallel  = `(?i)(?:\b(\d{1,3}) ?[x*×] ?|\b)`
	inBits    = regexp.MustCompile(parallel + `(\d{1,6}(?:[.,]\d{1,3})?) ?([kmgt]) ?(?:b(?:e|it|its)?(?:/s|ps)?|i?ge?|e|ig(?:abit|e)?|egabit|bytes?)?(?: ?ethernet)?(?:$|[^a-z0-9])`)
	optical   = regexp.MustCompile(parallel + `(oc|stm|sts)[- ]?(\d{1,4})c?(?:$|[^a-z0-9])`)
	hierarchy = regexp.MustCompile(parallel + `(ds-?[013]|t-?[13]|e-?[134])(?:$|[^a-z0-9])`)
	ethernet  = regexp.MustCompile(parallel + `(gig(?:abit)?[- ]?e(?:thernet)?|ge|fast[- ]?ethernet|fe)(?:$|[^a-z0-9])`)
)

var carriers = map[string]float64{"oc": 51.84e6, "sts": 51.84e6, "stm": 155.52e6}

var levels = map[string]float64{
	"ds0": 64e3, "ds1": 1.544e6, "ds3": 44.736e6, "t1": 1.544e6, "t3": 44.736e6,
	"e1": 2.048e6, "e3": 34.368e6, "e4": 139.264e6,
}

var prefixes = map[string]float64{"k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}

// labelled reads the speed that a label states, in bit/s; 0: none.
func labelled(label string) float64 {
	number := func(text string) float64 {
		n, err := strconv.ParseFloat(strings.Replace(text, ",", ".", 1), 64)
		if err != nil {
			return 1 // nothing stands before it
		}
		return n
	}
	if m := inBits.FindStringSubmatch(label); m != nil {
		return number(m[1]) * number(m[2]) * prefixes[strings.ToLower(m[3])]
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
