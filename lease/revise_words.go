package lease

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"sublet/vnet"
)

// revisions says in what two requests differ of which the second is a revised
// form of the first. What is new is told with its fields, what is gone without.
func revisions(was, is vnet.Request) (changes []vnet.Change) {
	before, after := described(was), described(is)
	for _, what := range append(slices.Clone(after.order), before.order...) {
		from, to := before.word(what), after.word(what)
		if from == to || slices.ContainsFunc(changes, func(c vnet.Change) bool { return c.What == what }) {
			continue
		}
		if of := cmp.Or(after.of[what], before.of[what]); of != "" && before.word(of) != after.word(of) {
			continue // said of the whole
		}
		if after.fields[what] != nil {
			to += " (" + strings.Join(after.fields[what], "; ") + ")"
		}
		if way, back := strings.CutPrefix(what, "reverse "); back {
			if before.both(way) && after.both(way) {
				continue // said of both directions
			}
			link, stage, staged := strings.Cut(way, " in stage ")
			if what = link + " reverse"; staged {
				what += " in stage " + stage
			}
		}
		changes = append(changes, vnet.Change{What: what, From: from, To: to + restarts(what, from) + beginsAnew(before, after, what)})
	}
	return changes
}

// restarts warns of what begins anew with a change of what a node is given.
func restarts(what, from string) string {
	field, _, _ := strings.Cut(what, " of ")
	switch {
	case from == "":
	case slices.Contains([]string{"files", "run", "env", "workdir"}, field):
		return " (its programs start again)"
	case slices.Contains([]string{"protocol", "as", "neighbors", "frr"}, field):
		return " (its routing begins anew)"
	case slices.Contains([]string{"area", "cost"}, field):
		return " (routing at its ends begins anew)"
	}
	return ""
}

// description is a request in words, by what they are about.
type description struct {
	order  []string
	words  map[string]string
	of     map[string]string   // the whole of which something is a part
	fields map[string][]string // of a whole, in words

	ofChains map[string]bool // links
}

func (d *description) note(what, words string) {
	if _, ok := d.words[what]; !ok {
		d.order = append(d.order, what)
	}
	d.words[what] = words
}

// part notes a field of a whole.
func (d *description) part(whole, field, what, words string) {
	d.note(what, words)
	d.of[what] = whole
	d.fields[whole] = append(d.fields[whole], field+" "+words)
}

// noteBoth notes words about both directions of a link.
func (d *description) noteBoth(what string, words [2]string) {
	d.note(what, words[0])
	d.note("reverse "+what, words[1])
}

// both says that both directions are alike.
func (d *description) both(what string) bool { return d.word(what) == d.word("reverse "+what) }

// word is what is stated, or what it means that nothing is.
func (d *description) word(what string) string {
	if words, ok := d.words[what]; ok {
		return words
	}
	about := strings.TrimPrefix(what, "reverse ")
	stated := strings.HasPrefix(about, "impairment of ") || strings.HasPrefix(about, "state of ") || strings.HasPrefix(about, "rate of ")
	switch {
	case stated && strings.Contains(about, " in stage "):
		return "as before"
	case strings.HasPrefix(about, "state of "):
		return "up"
	}
	return vnet.None
}

func described(r vnet.Request) *description {
	d := &description{words: make(map[string]string), of: make(map[string]string), fields: make(map[string][]string), ofChains: make(map[string]bool)}
	for _, l := range r.Links {
		d.ofChains[l.Name] = l.Chain != ""
	}
	d.note("duration", lengthWord(r))
	d.note("movable", strconv.FormatBool(r.Movable))
	if r.IPv6 {
		d.note("ipv6", "true")
	}
	d.note("negotiable", axesWord(r))
	if r.Verify != "" {
		d.note("verify", string(r.Verify))
	}
	for _, key := range slices.Sorted(maps.Keys(r.Labels)) {
		d.note("label "+key, strconv.Quote(r.Labels[key]))
	}
	d.topology(r.Topology, "")
	for _, c := range r.Chains {
		d.element("", "chain "+c.Name, c)
	}
	for _, c := range r.Classes {
		d.note("class "+c.Name, valueWord(c.Match))
	}
	for _, s := range r.Stages {
		d.stage(s)
	}
	return d
}

func (d *description) stage(s vnet.Stage) {
	where := " in stage " + s.Name
	begins := "after " + vnet.FormatDuration(s.After)
	if s.OnCommand {
		begins = "on command"
	}
	d.note("stage "+s.Name, begins)
	d.topology(s.Add, where)
	for _, name := range s.Remove {
		d.note("removal of "+name+where, "yes")
	}
	for _, function := range slices.Sorted(maps.Keys(s.Functions)) {
		d.note("presence of "+function+where, presenceWord(s.Functions[function]))
	}
	for _, chain := range slices.Sorted(maps.Keys(s.Chains)) {
		d.note("change of chain "+chain+where, s.Chains[chain].String())
	}
	for _, link := range slices.Sorted(maps.Keys(s.Links)) {
		if d.ofChains[link] {
			continue // chains say it
		}
		d.rates(link+where, s.Links[link])
	}
	for _, link := range slices.Sorted(maps.Keys(s.Impair)) {
		d.noteBoth("impairment of "+link+where, impairmentWords(s.Impair[link]))
	}
	for _, link := range slices.Sorted(maps.Keys(s.Down)) {
		d.note("state of "+link+where, stateWord(s.Down[link]))
	}
}

func presenceWord(there bool) string {
	if there {
		return "there"
	}
	return "absent"
}

// topology notes what is there; what is as usual only where a stage brings it.
func (d *description) topology(t vnet.Topology, where string) {
	for _, l := range t.Links {
		if l.Chain != "" {
			continue // chains say it
		}
		d.rates(l.Name+where, l.Bandwidth)
		d.ratesOf("link "+l.Name+where, l.Name+where)
		if where != "" || l.Impair != [2]vnet.Impairment{} {
			d.noteBoth("impairment of "+l.Name+where, impairmentWords(l.Impair))
		}
		if where != "" || l.Down {
			d.note("state of "+l.Name+where, stateWord(l.Down))
		}
	}
	for _, n := range t.Nodes {
		d.element("node ", n.Name+where, n)
	}
	for _, n := range t.Routers {
		d.element("router ", n.Name+where, n)
	}
	for _, s := range t.Switches {
		for _, x := range s.FlowSlices {
			d.flowSlice(x, s.Name+where)
			d.of["slice "+x.Name+" of "+s.Name+where] = "switch " + s.Name + where
		}
		s.FlowSlices = nil
		d.element("switch ", s.Name+where, s)
	}
	for _, l := range t.Links {
		if l.Chain != "" {
			continue
		}
		l.Bandwidth, l.Impair, l.Down = [2]vnet.Bandwidth{}, [2]vnet.Impairment{}, false
		d.element("link ", l.Name+where, l)
	}
}

// flowSlice notes a slice of a switch, and each field of it.
func (d *description) flowSlice(x vnet.FlowSlice, of string) {
	of = "slice " + x.Name + " of " + of
	d.note(of, vnet.There)
	fields, err := tree(x.Sized())
	if err != nil {
		return // of such types there is always a JSON
	}
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		switch field {
		case "name":
		case "links":
			d.part(of, field, "links of "+of, strings.Join(x.Links, ", "))
		default:
			d.part(of, fieldName(field), fieldName(field)+" of "+of, fieldWord(field, fields[field]))
		}
	}
}

// beginsAnew warns of a slice of a switch that does with another value of a field, as
// the switch has it (openflow/slice).
func beginsAnew(before, after *description, what string) string {
	field, of, _ := strings.Cut(what, " of ")
	if !strings.HasPrefix(of, "slice ") || before.word(of) != after.word(of) {
		return ""
	}
	switch has := strings.Split(after.word(what), ", "); {
	case field == "match", field == "tables", field == "default",
		field == "links" && after.word(what) != vnet.None && slices.ContainsFunc(strings.Split(before.word(what), ", "), func(link string) bool { return !slices.Contains(has, link) }):
		return " (the slice begins anew, without its entries, groups and meters)"
	}
	return ""
}

// element notes one thing, and each field of it; called is its name in those.
func (d *description) element(kind, called string, element any) {
	whole := kind + called
	d.note(whole, vnet.There)
	fields, err := tree(element)
	if err != nil {
		return // of such types there is always a JSON
	}
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		if field == "name" || field == "bandwidth" {
			continue
		}
		d.part(whole, fieldName(field), fieldName(field)+" of "+called, fieldWord(field, fields[field]))
	}
}

// fieldWord is a field's value with the unit that its name has in JSON.
func fieldWord(field string, value any) string {
	switch value := value.(type) {
	case float64:
		switch field[strings.LastIndex(field, "_")+1:] {
		case "ns":
			return vnet.FormatDuration(time.Duration(value))
		case "bytes":
			return vnet.Bytes(value).String()
		case "milli":
			return vnet.CPU(value).String()
		case "bps":
			return vnet.Rate(value).String()
		}
	case []any:
		if words, ok := stringsIn(value); ok {
			return shortened(strings.Join(words, ", "))
		}
	}
	return valueWord(value)
}

// stringsIn are the elements of a list if all are text.
func stringsIn(list []any) (words []string, ok bool) {
	for _, one := range list {
		word, text := one.(string)
		if !text {
			return nil, false
		}
		words = append(words, word)
	}
	return words, true
}

// tree is a struct as JSON has it.
func tree(element any) (fields map[string]any, err error) {
	text, err := json.Marshal(element)
	if err == nil {
		err = json.Unmarshal(text, &fields)
	}
	return fields, err
}

// longestValue is up to how many bytes a value is written out in a change.
const longestValue = 60

// valueWord is a field's value; of a long one only what tells it from others.
func valueWord(value any) string {
	text, err := json.Marshal(value)
	if err != nil || len(text) <= longestValue {
		return cmp.Or(strings.Trim(string(text), `"`), "nothing")
	}
	return shortened(string(text))
}

// shortened is a long value's length and what tells it from others.
func shortened(text string) string {
	if len(text) <= longestValue {
		return text
	}
	return fmt.Sprintf("%d bytes of digest %.4x", len(text), sha256.Sum256([]byte(text)))
}

func (d *description) rates(link string, both [2]vnet.Bandwidth) {
	d.noteBoth("rate of "+link, [2]string{both[0].String(), both[1].String()})
}

// ratesOf makes the rates of a link a part of it.
func (d *description) ratesOf(link, name string) {
	for _, what := range []string{"rate of " + name, "reverse rate of " + name} {
		d.of[what] = link
	}
	words := d.words["rate of "+name]
	if back := d.words["reverse rate of "+name]; back != words {
		words += ", reverse " + back
	}
	d.fields[link] = append(d.fields[link], words)
}

// impairmentWords says what is stated of both directions.
func impairmentWords(both [2]vnet.Impairment) [2]string {
	return [2]string{cmp.Or(both[0].String(), vnet.None), cmp.Or(both[1].String(), vnet.None)}
}

// stateWord says whether a link is down.
func stateWord(down bool) string {
	if down {
		return "down"
	}
	return "up"
}
