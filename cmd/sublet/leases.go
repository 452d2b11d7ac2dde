package main

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sublet/lease/api"
	"sublet/vnet"
)

// leaseView is what `sublet leases -o json` says of a lease.
type leaseView struct {
	Network vnet.VNetID       `json:"network"`
	Labels  map[string]string `json:"labels,omitempty"`
	Tenant  vnet.TenantID     `json:"tenant"`
	State   vnet.State        `json:"state"`
	Stage   string            `json:"stage,omitempty"`
	Window  vnet.Window       `json:"window"`
	Nodes   []nodeView        `json:"nodes"`
	Links   []linkView        `json:"links"`
	Mapping vnet.Mapping      `json:"mapping"`
	Message string            `json:"message,omitempty"`
	// Concerns are what the owner should know now, such as a promise that is broken.
	Concerns []vnet.Concern `json:"concerns,omitempty"`
	Verdict  *vnet.Verdict  `json:"verdict,omitempty"`
	Cost     *vnet.Account  `json:"cost,omitempty"`
	Repairs  *vnet.Repairs  `json:"repairs,omitempty"`
	// Addresses of nodes, the one by which each is known first.
	Addresses map[string][]netip.Addr `json:"addresses,omitempty"`
	// LinkAddresses of the ends of links, where they have their own.
	LinkAddresses map[string]vnet.LinkAddresses `json:"link_addresses,omitempty"`
	// Exposed are the ports that images of nodes say they serve.
	Exposed map[string][]string `json:"exposed,omitempty"`
}

// linkView is one direction of a virtual link.
type linkView struct {
	Name  string    `json:"name"`
	From  string    `json:"from"`
	To    string    `json:"to"`
	Min   vnet.Rate `json:"min_bps"` // guaranteed
	Max   vnet.Rate `json:"max_bps"` // asked for; 0: best effort
	Alloc vnet.Rate `json:"alloc_bps"`
	// Latency is the bound; 0: none.
	Latency time.Duration     `json:"latency_ns,omitempty"`
	Labels  map[string]string `json:"labels,omitempty"`
	Down    bool              `json:"down,omitempty"`
	// Traffic is asked for one lease at a time.
	Traffic *trafficView `json:"traffic,omitempty"`
}

// nodeView is a node, router or switch, and where it is.
type nodeView struct {
	Name   string            `json:"name"`
	Host   vnet.HostID       `json:"host,omitempty"`
	Site   string            `json:"site,omitempty"` // asked for
	CPU    vnet.CPU          `json:"cpu_milli,omitempty"`
	Memory vnet.Bytes        `json:"memory_bytes,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
}

func viewLease(l vnet.Lease) leaseView {
	v := leaseView{
		Network: l.Request.Network, Tenant: l.Request.Tenant, State: l.State, Labels: l.Request.Labels, Nodes: []nodeView{},
		Window: l.Window, Mapping: l.Mapping, Message: l.Message, Concerns: l.Concerns, Verdict: l.Verdict, Cost: l.Account, Repairs: l.Repairs, Exposed: l.Exposed, Links: []linkView{},
	}
	v.Addresses, v.LinkAddresses = make(map[string][]netip.Addr), l.LinkAddresses
	for _, n := range l.Topology().All() {
		v.Nodes = append(v.Nodes, nodeView{n.Name, l.Mapping.Nodes[n.Name], n.Site, n.CPU, n.Memory, n.Labels})
		if l.Addresses[n.Name].IsValid() {
			v.Addresses[n.Name] = l.AddressesOf(n.Name)
		}
	}
	if l.Stage >= 0 {
		v.Stage = l.Request.Stages[l.Stage].Name
	}
	for _, link := range l.Topology().Links {
		for _, d := range vnet.Directions {
			v.Links = append(v.Links, linkView{
				Name: link.Name, From: link.Ends[d], To: link.Ends[d.Opposite()],
				Min: link.Bandwidth[d].Min, Max: link.Bandwidth[d].Max, Alloc: l.Rates[link.Name][d], Latency: link.Latency, Labels: link.Labels, Down: link.Down,
			})
		}
	}
	return v
}

func (a *app) leases() *cobra.Command {
	var selector string
	c := a.list(&cobra.Command{
		Use:               "leases [NAME]",
		Short:             "Show leases: state, window, allocated rates, mapping",
		Example:           "  sublet leases\n  sublet leases hello\n  sublet leases -l course=net1\n  sublet leases -o json",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: a.completeLease,
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.checkFormat(); err != nil {
				return err
			}
			client := a.client()
			leases, err := client.Leases(c.Context())
			if err != nil {
				return err
			}
			if leases, err = selected(leases, selector); err != nil {
				return err
			}
			if len(args) == 0 {
				waiting, err := client.Waiting(c.Context())
				if err != nil {
					return err
				}
				return a.printLeases(append(leases, asLeases(waiting, selector)...))
			}
			l, err := find(leases, args[0])
			if err != nil {
				return err
			}
			return a.printLease(l, a.traffic(c.Context(), l))
		},
	})
	selectorFlag(c, &selector)
	return c
}

// stateWaiting is shown of requests that wait for room, among leases.
const stateWaiting vnet.State = "waiting"

// asLeases are requests that wait as they are shown among leases.
func asLeases(list []vnet.Waiting, selector string) (leases []vnet.Lease) {
	for _, w := range list {
		l := vnet.Lease{Request: w.Request, State: stateWaiting, Stage: -1, Message: w.Why, Window: vnet.Window{Start: w.Request.Start}}
		if !w.Fits.IsZero() {
			l.Message = "it fits now: ask for it again (sublet up)"
		}
		leases = append(leases, l)
	}
	leases, _ = selected(leases, selector) // which was read before
	return leases
}

// concernTexts are what the owner of a lease should know now, beside its message.
func concernTexts(l vnet.Lease) (texts []string) {
	for _, c := range l.Concerns {
		switch c.Kind {
		case string(vnet.Failed), string(vnet.Degraded): // the message says it
		case "end", "maintenance":
			texts = append(texts, c.Why)
		default:
			texts = append(texts, c.Kind+" "+c.Why)
		}
	}
	return texts
}

// noteOf is a lease's note among others: what is wrong, then what is to come.
func noteOf(l vnet.Lease) string {
	texts := concernTexts(l)
	if l.Message != "" {
		texts = append([]string{l.Message}, texts...)
	}
	return strings.Join(texts, "; ")
}

// selectorFlag is -l, by which a command takes networks by their labels.
func selectorFlag(c *cobra.Command, selector *string) {
	c.Flags().StringVarP(selector, "selector", "l", "", "only networks with these labels: KEY=VALUE, KEY!=VALUE, KEY or !KEY, separated by commas")
}

// selected are the leases that a selector chooses.
func selected(leases []vnet.Lease, selector string) ([]vnet.Lease, error) {
	s, err := vnet.ParseSelector(selector)
	if err != nil {
		return nil, badInput{fmt.Errorf("--selector: %w", err)}
	}
	return slices.DeleteFunc(leases, func(l vnet.Lease) bool { return !s.Chooses(l.Request.Labels) }), nil
}

func (a *app) printLeases(leases []vnet.Lease) error {
	views := []leaseView{}
	var rows [][]string
	for _, l := range leases {
		v := viewLease(l)
		views = append(views, v)
		from, until := when(v.Window.Start), when(v.Window.End)
		if l.State == stateWaiting {
			from, until = "-", "-"
		}
		rows = append(rows, []string{
			string(v.Network), string(v.Tenant), string(v.State), orDash(v.Stage), from, until,
			fmt.Sprint(len(l.Topology().All())), fmt.Sprint(len(l.Topology().Links)), checked(v.Verdict), used(v.Cost), repairs(v.Repairs), brief(noteOf(l)),
		})
	}
	return a.printAll(views, "NETWORK TENANT STATE STAGE FROM UNTIL NODES LINKS CHECKED COST REPAIRS NOTE", rows, "no leases")
}

// printLease shows one lease link by link; in JSON and YAML as a list of one.
func (a *app) printLease(l vnet.Lease, traffic map[string][2]*trafficView) error {
	v := viewLease(l)
	var rows [][]string
	for i, link := range v.Links {
		b := l.Topology().Links[i/2].Bandwidth[i%2]
		passed := traffic[link.Name][i%2]
		v.Links[i].Traffic = passed
		rows = append(rows, slices.Concat([]string{
			link.Name, link.From, link.To, asked(b.Min), asked(b.Max), asked(link.Alloc),
		}, passed.words(), []string{routes(l.Mapping.Paths(link.Name), i%2)}))
	}
	if a.format == "table" {
		fmt.Fprintf(a.out, "%s is %s, from %s until %s\n", l.ID(), l.State, when(l.Window.Start), when(l.Window.End))
		if l.Message != "" {
			fmt.Fprintln(a.out, harmless(l.Message))
		}
		for _, text := range concernTexts(l) {
			fmt.Fprintln(a.out, harmless(text))
		}
		a.printAccount(l.Account)
		if l.Repairs != nil {
			fmt.Fprintf(a.out, "repairs: %d, the last at %s on %s\n", l.Repairs.Count, when(l.Repairs.Time), harmlessLine(l.Repairs.Last))
		}
		for _, n := range l.Topology().All() {
			fmt.Fprintln(a.out, strings.Join(slices.DeleteFunc([]string{" ", n.Name, addressWords(l, n.Name), "on", string(l.Mapping.Nodes[n.Name])}, func(w string) bool { return w == "" }), " "))
		}
		a.printImpairments(l.Topology())
	}
	return a.print([]leaseView{v}, "LINK FROM TO MIN MAX ALLOCATED SENT ARRIVED DROPPED PATH", rows)
}

// addressWords are a node's addresses: the one it is known by, then those of its
// ends of links.
func addressWords(l vnet.Lease, node string) string {
	var words []string
	for _, a := range l.AddressesOf(node) {
		if !a.IsValid() { // it ended
			continue
		}
		words = append(words, a.String())
	}
	return strings.Join(words, ", ")
}

func routes(paths []vnet.PathShare, direction int) string {
	if len(paths) == 1 {
		return route(paths[0].Path, direction)
	}
	var words []string
	for _, p := range paths {
		words = append(words, fmt.Sprintf("%.3g%%: %s", 100*float64(p.Units)/vnet.ShareUnits, route(p.Path, direction)))
	}
	return strings.Join(words, "; ")
}

// used is what has been metered, over what was quoted for the whole window.
func used(a *vnet.Account) string {
	switch {
	case a == nil:
		return "-"
	case a.Quote == nil:
		return units(a.Used.Total)
	}
	return units(a.Used.Total) + "/" + units(a.Quote.Total)
}

// printAccount says what a lease costs.
func (a *app) printAccount(account *vnet.Account) {
	if account == nil {
		return
	}
	if account.Quote != nil {
		fmt.Fprintf(a.out, "cost: quoted %s\n", costWords(*account.Quote))
	}
	fmt.Fprintf(a.out, "cost: used %s; an hour is %s\n", costWords(account.Used), units(account.Hourly.Total))
}

func costWords(c vnet.Cost) string {
	kernel := ""
	if c.Kernel > 0 {
		kernel = fmt.Sprintf(", %s seconds of kernels on its packets", units(c.Kernel))
	}
	places := ""
	if c.Places > 0 {
		places = fmt.Sprintf(", %s for places", units(c.Places))
	}
	return fmt.Sprintf("%s (%s seconds of nodes, %s Mbit of guarantees%s%s)", units(c.Total), units(c.Resource), units(c.Bandwidth), kernel, places)
}

// units prints an amount for people: whole, unless it is small or beyond reading.
func units(x float64) string {
	if x >= 100 && x < 1e12 {
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.4g", x)
}

func route(path vnet.Path, direction int) string {
	if len(path) == 0 {
		return "(one host)"
	}
	words := append(vnet.Path{}, path...)
	if direction == 1 {
		for i, j := 0, len(words)-1; i < j; i, j = i+1, j-1 {
			words[i], words[j] = words[j], words[i]
		}
	}
	return strings.Join(words, " ")
}

func asked(r vnet.Rate) string {
	if r == 0 {
		return "-"
	}
	return readable(r)
}

// readable prints a rate to four digits, for tables.
func readable(r vnet.Rate) string {
	switch {
	case r == vnet.Unbounded:
		return "-"
	case r >= vnet.Gbit:
		return fmt.Sprintf("%.4g Gbit", float64(r)/1e9)
	case r >= vnet.Mbit:
		return fmt.Sprintf("%.4g Mbit", float64(r)/1e6)
	}
	return fmt.Sprintf("%.4g kbit", float64(r)/1e3)
}

func when(t time.Time) string {
	if t.IsZero() {
		return "released"
	}
	return t.Local().Format("2006-01-02 15:04:05 MST")
}

// briefly is how much of a note a table of many leases shows, in characters.
const briefly = 60

// brief cuts a note for a table; sublet leases NAME and JSON have all of it.
func brief(note string) string {
	if characters := []rune(note); len(characters) > briefly {
		return string(characters[:briefly-3]) + "..."
	}
	return note
}

func checked(v *vnet.Verdict) string {
	switch {
	case v == nil:
		return "-"
	case v.Stale: // of other rates or places than the present ones
		return string(v.Says()) + " (stale)"
	}
	return string(v.Says())
}

func repairs(r *vnet.Repairs) string {
	if r == nil {
		return "-"
	}
	return fmt.Sprint(r.Count)
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// find picks the lease that [TENANT/]NAME means.
func find(leases []vnet.Lease, name string) (vnet.Lease, error) {
	words, err := splitName(name, 1, "NAME")
	if err != nil {
		return vnet.Lease{}, err
	}
	var found []vnet.Lease
	for _, l := range leases {
		if string(l.Request.Network) == words[1] && (words[0] == "" || string(l.Request.Tenant) == words[0]) {
			found = append(found, l)
		}
	}
	return pick(found, name)
}

// noLease is a name that no lease has.
type noLease string

func (n noLease) Error() string { return fmt.Sprintf("no lease %q: see sublet leases", string(n)) }

// pick prefers the one that is not over.
func pick(found []vnet.Lease, name string) (vnet.Lease, error) {
	var alive []vnet.Lease
	for _, l := range found {
		if l.State != vnet.Ended {
			alive = append(alive, l)
		}
	}
	if len(alive) == 0 && len(found) > 0 {
		alive = found[len(found)-1:]
	}
	switch len(alive) {
	case 0:
		return vnet.Lease{}, badInput{noLease(name)}
	case 1:
		return alive[0], nil
	}
	return vnet.Lease{}, badInput{fmt.Errorf("%q is the name of %d networks: write %s", name, len(alive), alive[0].ID())}
}

// lookUp asks the server for the lease that a name means.
func (a *app) lookUp(ctx context.Context, name string) (*api.Client, vnet.Lease, error) {
	client := a.client()
	leases, err := client.Leases(ctx)
	if err != nil {
		return nil, vnet.Lease{}, err
	}
	l, err := find(leases, name)
	return client, l, err
}
