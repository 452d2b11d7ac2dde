package lease

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"sublet/lease/conversation"
	"sublet/plan"
	"sublet/report"
	"sublet/vnet"
)

// noon is when every conversation begins.
var noon = time.Date(2027, 3, 1, 12, 0, 0, 0, time.UTC)

// TestConversations plays testdata/*.txt with a book.
func TestConversations(t *testing.T) {
	conversation.Play(t, "testdata/*.txt", func() func([]string) string {
		c := talk{now: noon}
		return c.say
	})
}

// talk is a book with a clock and obedient or disobedient hosts.
type talk struct {
	now    time.Time
	sub    vnet.Substrate
	book   *Book
	shown  map[vnet.HostID]string // plans as last printed
	quiet  []string               // hosts that give no sign of life
	offers []vnet.Offer
	text   memoryStore

	onTransition func(from, to phase) // of every book; nil: nobody asks
}

func (c *talk) say(words []string) string {
	switch words[0] {
	case "host", "switch", "link", "relays", "diamonds", "remove":
		describe(&c.sub, words)
		return ""
	case "open":
		c.book, c.shown = New(c.sub), make(map[vnet.HostID]string)
		c.book.onTransition = c.onTransition
		return ""
	case "substrate":
		return answer(c.book.SetSubstrate(c.now, c.sub))
	case "admit":
		return c.admit(parseRequest(c.now, words[1:]))
	case "accept":
		i := 0
		if len(words) > 1 {
			i = slices.IndexFunc(c.offers, func(o vnet.Offer) bool { return string(o.Axes[0]) == words[1] })
		}
		return c.admit(c.offers[i].Request)
	case "release":
		return answer(c.book.Release(c.now, parseID(words[1])))
	case "advance":
		d, err := vnet.ParseDuration(words[1])
		must(err)
		c.now = c.now.Add(d)
		for host := range c.book.Plans() {
			if !slices.Contains(c.quiet, string(host)) {
				c.book.Seen(c.now, host)
			}
		}
		return answer(c.book.Tick(c.now))
	case "fail", "mend":
		if words[1] == "host" {
			return answer(c.book.SetHostDown(c.now, vnet.HostID(words[2]), words[0] == "fail"))
		}
		return answer(c.book.SetLinkDown(c.now, words[2], words[0] == "fail"))
	case "dark": // HOST INTERFACE...: what its agent sees without a carrier
		r := c.parseReport(words[1:2])
		r.NoCarrier = words[2:]
		return answer(c.book.Report(c.now, r))
	case "paths":
		return c.paths()
	case "quiet":
		c.quiet = words[1:]
		return ""
	case "next":
		return c.ago(c.book.Next(c.now)) + "\n"
	case "drain", "undrain":
		return c.drain(vnet.HostID(words[1]), words[0] == "drain")
	case "pause": // LEASE [give-back]
		return answer(c.book.Pause(c.now, parseID(words[1]), len(words) > 2))
	case "resume":
		err := c.book.Resume(c.now, parseID(words[1]), nil)
		if rejection, ok := err.(*vnet.Rejection); ok {
			return c.rejection(rejection)
		}
		return answer(err)
	case "revise": // to the first offer
		_, _, err := c.book.Revise(c.now, parseID(words[1]), c.offers[0].Request, nil, false)
		return answer(err)
	case "stage":
		return answer(c.book.BeginStage(c.now, parseID(words[1]), words[2]))
	case "report":
		return c.report(words[1:])
	case "leases":
		return c.leases()
	case "plans":
		return c.plans()
	case "cost":
		return c.cost(parseID(words[1]))
	case "ledger":
		return c.ledger()
	case "restart":
		return c.restart()
	}
	return "not understood\n"
}

func (c *talk) admit(r vnet.Request) string {
	l, err := c.book.Admit(c.now, r, 1000)
	if rejection, ok := err.(*vnet.Rejection); ok {
		return c.rejection(rejection)
	}
	if err != nil {
		return answer(err)
	}
	return c.lease(l)
}

func (c *talk) rejection(r *vnet.Rejection) string {
	var b strings.Builder
	for _, reason := range r.Reasons {
		fmt.Fprintf(&b, "refused: %s\n", reason)
	}
	for i, o := range r.Offers {
		word := "offer"
		if i > 0 {
			word = "or"
		}
		for _, change := range o.Changes {
			fmt.Fprintf(&b, "%s: %s: %s -> %s\n", word, change.What, change.From, change.To)
			word = " and"
		}
	}
	if r.Never != "" {
		fmt.Fprintf(&b, "never: %s\n", r.Never)
	}
	c.offers = r.Offers
	return b.String()
}

// report is "report HOST [REVISION] [KIND KEY=PROBLEM]", "report all" or
// "report all but HOST...": a host has gone through its plan.
func (c *talk) report(words []string) string {
	plans := c.book.Plans()
	if words[0] == "all" {
		for _, name := range slices.Sorted(maps.Keys(plans)) {
			if !slices.Contains(words[1:], string(name)) {
				must(c.book.Report(c.now, report.Report{Host: name, Revision: plans[name].Revision}))
			}
		}
		return ""
	}
	return answer(c.book.Report(c.now, c.parseReport(words)))
}

func (c *talk) parseReport(words []string) report.Report {
	p, _ := c.book.Plan(vnet.HostID(words[0]))
	told, err := conversation.Report(p.Revision, words)
	must(err)
	return told
}

func (c *talk) leases() string {
	var b strings.Builder
	for _, l := range c.book.Leases() {
		b.WriteString(c.lease(l))
	}
	return b.String()
}

// lease prints one line for the lease, one a link, in Mbit/s.
func (c *talk) lease(l vnet.Lease) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s #%d %s", l.ID(), l.Serial, l.State)
	if l.Stage >= 0 {
		fmt.Fprintf(&b, " stage %s", l.Request.Stages[l.Stage].Name)
	}
	fmt.Fprintf(&b, " [%s, %s)", c.ago(l.Window.Start), c.ago(l.Window.End))
	if l.Message != "" {
		fmt.Fprintf(&b, " %q", l.Message)
	}
	b.WriteString("\n")
	for _, name := range slices.Sorted(maps.Keys(l.Rates)) {
		fmt.Fprintf(&b, "  %s %g/%g\n", name, l.Rates[name][0].Mbps(), l.Rates[name][1].Mbps())
	}
	return b.String()
}

// paths prints where everything is.
func (c *talk) paths() string {
	var b strings.Builder
	for _, l := range c.book.Leases() {
		if l.State == vnet.Ended {
			continue
		}
		fmt.Fprintf(&b, "%s", l.ID())
		for _, n := range l.Request.Union().Placed() {
			fmt.Fprintf(&b, " %s@%s", n.Name, l.Mapping.Nodes[n.Name])
		}
		for _, link := range l.Request.Union().Links {
			fmt.Fprintf(&b, " %s:%s", link.Name, strings.Join(l.Mapping.Links[link.Name], ","))
		}
		if l.Move != nil {
			fmt.Fprintf(&b, " %s", l.Move.Phase)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// cost prints a lease's account: resource-seconds and Mbit.
func (c *talk) cost(id vnet.LeaseID) string {
	l, _ := c.book.Lease(id)
	a := l.Metered(c.now).Account
	text := fmt.Sprintf("hourly %g %g", a.Hourly.Resource, a.Hourly.Bandwidth)
	if a.Quote != nil {
		text += fmt.Sprintf(", quoted %g %g", a.Quote.Resource, a.Quote.Bandwidth)
	}
	return text + fmt.Sprintf(", used %g %g\n", a.Used.Resource, a.Used.Bandwidth)
}

// plans prints the plans that changed since they were last printed, one line
// for every link's end that shapes.
func (c *talk) plans() string {
	var b strings.Builder
	plans := c.book.Plans()
	for _, name := range slices.Sorted(maps.Keys(plans)) {
		text := summary(plans[name])
		if text != c.shown[name] {
			b.WriteString(text)
		}
		c.shown[name] = text
	}
	for name := range c.shown {
		if _, ok := plans[name]; !ok {
			delete(c.shown, name)
			fmt.Fprintf(&b, "%s: no plan\n", name)
		}
	}
	return b.String()
}

func summary(p plan.Host) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s rev %d: %d items\n", p.Host, p.Revision, len(p.Items()))
	for _, l := range plan.Of[plan.VxLink](p) {
		fmt.Fprintf(&b, "  %s %s", l.Lease, l.Link)
		for _, end := range l.Ends {
			if end.Tunnel != nil {
				fmt.Fprintf(&b, " vni %d", end.Tunnel.VNI-firstVNI)
			}
			if end.Rate > 0 {
				fmt.Fprintf(&b, " %gM", end.Rate.Mbps())
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

// restart saves the book, through text, and goes on from what was saved.
func (c *talk) restart() string {
	must(c.text.save(c.book.Changes()))
	state, err := c.text.load()
	must(err)
	c.book, err = Restore(c.now, state)
	if err == nil {
		c.book.onTransition = c.onTransition
		err = c.book.Tick(c.now)
	}
	return answer(err)
}

// drain says what becomes of the leases on a host.
func (c *talk) drain(host vnet.HostID, drained bool) string {
	list, err := c.book.SetHostDrained(c.now, host, drained)
	var b strings.Builder
	for _, d := range list {
		if len(d.Stays) == 0 {
			fmt.Fprintf(&b, "%s goes\n", d.Lease)
		}
		for _, why := range d.Stays {
			fmt.Fprintf(&b, "%s stays: %s\n", d.Lease, why)
		}
	}
	return b.String() + answer(err)
}

// ledger saves, and prints what was ever saved of the ledger.
func (c *talk) ledger() string {
	must(c.text.save(c.book.Changes()))
	c.book.Saved()
	var b strings.Builder
	for _, serial := range slices.Sorted(maps.Keys(c.text.records)) {
		r := c.text.records[serial]
		fmt.Fprintf(&b, "%s/%s #%d %s [%s, %s) admitted %s, ran %s, ended %s %q: %d nodes, %d links, %s cores, %s, used %g\n",
			r.Tenant, r.Network, r.Serial, r.State, c.ago(r.Start), c.ago(r.End), c.ago(r.Admitted), c.ago(r.Ran), c.ago(r.Ended), r.Why,
			r.Nodes, r.Links, r.CPU, r.Bandwidth, r.Used.Total)
	}
	return b.String()
}

// ago prints a time as a distance from noon.
func (c *talk) ago(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return vnet.FormatDuration(t.Sub(noon))
}

func answer(err error) string {
	if err == nil {
		return ""
	}
	return "error: " + err.Error() + "\n"
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
