package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"sublet/lease/api"
	"sublet/vnet"
	"sublet/vnet/file"
)

func (a *app) up() *cobra.Command {
	var o upOptions
	c := a.noun(&cobra.Command{
		Use:   "up FILE...",
		Short: "Request networks, deploy them, wait until they are ready",
		Long: `Request the networks in FILEs (YAML, VXDL or what sublet import reads, - for
standard input), deploy them and wait until they are ready. All of them or none: if one is refused, those
admitted before it are released again. A network that is as its file says already
stays as it is; one that differs is changed with sublet apply. --name gives the
network of one FILE another name, such as for a second copy.

With --dry-run nothing is asked of a server and nothing is touched: the requests
are decided one after another on a substrate of their own, what is admitted
stays, and a table says what was admitted, what refused and why. A start that
has passed is taken for the present. Exit code 3: one of them was refused.

With --from OUT the network is one that sublet save has written: by its name or
another one (--name), from now on or another time (--start), as long as it had or
--for. What its nodes had kept is brought to them once it runs; if that fails the
network is released again.

-o json and -o yaml print the leases as sublet leases does, and the refusal if
it comes to one.`,
		Example: "  sublet up examples/hello.yaml\n  sublet up big.yaml --accept\n  sublet up big.yaml --offer smaller.yaml\n  sublet up --dry-run --substrate fat-tree:4 *.yaml\n  sublet up --from course.tar.zst --name again --for 4h",
		Args: func(c *cobra.Command, args []string) error {
			if o.from != "" {
				return cobra.NoArgs(c, args)
			}
			return cobra.MinimumNArgs(1)(c, args)
		},

		ValidArgsFunction: completeRequest,
		RunE: func(c *cobra.Command, args []string) error {
			if err := errors.Join(a.checkFormat(), o.check()); err != nil {
				return err
			}
			switch {
			case o.from != "":
				return a.upFrom(c.Context(), o)
			case o.name != "" && len(args) > 1:
				return badInput{errors.New("--name is for one FILE: several have names of their own")}
			case o.dryRun:
				return a.dryRun(args, o)
			}
			return a.upFiles(c.Context(), args, o)
		},
	})
	c.Flags().BoolVar(&o.accept, "accept", false, "take the counter-offer at once, if it comes to one")
	c.Flags().StringVar(&o.offer, "offer", "", "write the counter-offer to this file; of several requests, that of the first that is refused")
	c.Flags().StringVar(&o.waiting, "waiting", "", "let what is refused wait for room: it is told (sublet events) when it fits, or with --waiting=admit admitted then")
	c.Flags().Lookup("waiting").NoOptDefVal = string(vnet.WaitingOffer)
	c.Flags().BoolVar(&o.noWait, "no-wait", false, "return once admitted")
	c.Flags().BoolVar(&o.dryRun, "dry-run", false, "only say what would be admitted, on --substrate")
	c.Flags().StringVar(&o.substrate, "substrate", "", "substrate for --dry-run: "+substrateForms)
	c.Flags().DurationVar(&o.timeout, "timeout", 5*time.Minute, "how long to wait until a network is ready")
	c.Flags().StringVar(&o.from, "from", "", "an archive of sublet save, - for standard input, in place of FILEs")
	c.Flags().StringVar(&o.name, "name", "", "what the network of one FILE, or of --from, is called (default: as it says)")
	c.Flags().StringVar(&o.begin, "start", "", "with --from: when it shall begin, such as 2027-03-08T08:00:00Z, or how far from now, such as 7d (default: at once)")
	c.Flags().StringVar(&o.length, "for", "", "with --from: how long it shall last, such as 4h (default: as long as it had)")
	c.Flags().BoolVar(&o.bare, "without-files", false, "with --from: without what the nodes had kept")
	completeSubstrateFlag(c)
	return c
}

// upFiles asks for the networks that files describe.
func (a *app) upFiles(ctx context.Context, files []string, o upOptions) error {
	requests := make([]vnet.Request, len(files))
	for i, name := range files {
		var err error
		if requests[i], err = a.readRequest(name, false); err != nil {
			return err
		}
	}
	if o.name != "" {
		if err := a.rename(&requests[0], o.name); err != nil {
			return err
		}
	}
	return a.admit(ctx, requests, o)
}

// upOptions are the flags of up.
type upOptions struct {
	accept, noWait, dryRun bool
	offer, substrate       string
	waiting                string
	timeout                time.Duration

	from, name, begin, length string // of a network that was saved
	bare                      bool   // without its files
	// then is done to a network that was made, once it runs; nil: nothing.
	then func(context.Context, *api.Client, vnet.Lease) error
}

// check refuses flags that do not go together.
func (o upOptions) check() error {
	if o.substrate != "" && !o.dryRun {
		return badInput{errors.New("--substrate is for --dry-run: a server has its own")}
	}
	if o.waiting != "" && o.waiting != string(vnet.WaitingOffer) && o.waiting != string(vnet.WaitingAdmit) {
		return badInput{fmt.Errorf("--waiting=%s: state offer or admit", o.waiting)}
	}
	if o.from == "" && (o.begin != "" || o.length != "" || o.bare) {
		return badInput{errors.New("--start, --for and --without-files are for --from: a file says them itself")}
	}
	if o.name != "" && o.dryRun {
		return badInput{errors.New("--name does not go with --dry-run: what is admitted does not depend on names")}
	}
	if o.from != "" && (o.dryRun || o.waiting != "") {
		return badInput{errors.New("--from does not go with --dry-run and --waiting: take request.yaml out of the archive")}
	}
	return nil
}

// rename gives a network another name than its file.
func (a *app) rename(r *vnet.Request, name string) error {
	if err := vnet.CheckName(name); err != nil {
		return badInput{fmt.Errorf("--name: %w", err)}
	}
	was := r.Network
	r.Network = vnet.VNetID(name)
	if s, ok := a.sources[was]; ok {
		a.sources[r.Network] = s
	}
	return nil
}

// upView is what `sublet up -o json` says.
type upView struct {
	Leases  []leaseView     `json:"leases"`
	Refused *vnet.Rejection `json:"refused,omitempty"` // then there are no leases
}

// admit asks for all the requests and waits for them, and prints what came of
// it where that is wanted in JSON or YAML.
func (a *app) admit(ctx context.Context, requests []vnet.Request, o upOptions) error {
	p := a.progress("asking for admission")
	leases, err := a.obtain(ctx, p, requests, o)
	p.end()
	if a.format == "table" {
		return err
	}
	view := upView{Leases: []leaseView{}}
	for _, l := range leases {
		view.Leases = append(view.Leases, viewLease(l))
	}
	errors.As(err, &view.Refused)
	return errors.Join(err, a.print(view, "", nil))
}

// obtain asks for all the requests, gives back what it got if one is refused,
// and waits until they are ready.
func (a *app) obtain(ctx context.Context, p *progress, requests []vnet.Request, o upOptions) ([]vnet.Lease, error) {
	client := a.client()
	var admitted, there []vnet.Lease
	for _, r := range requests {
		admission, err := client.Ask(ctx, api.Ask{Request: r, Accept: o.accept, Waiting: vnet.WaitingFor(o.waiting)})
		if l, same := a.asAsked(ctx, r, err); same && o.then == nil {
			a.tellOf(p, "%s is as asked already\n", l.ID())
			there = append(there, l)
			continue
		}
		if err != nil {
			err = errors.Join(a.placed(r.Network, err), giveBack(client, admitted))
			return nil, a.refused(err, o.offer)
		}
		if w := admission.Waiting; w != nil {
			a.tellOf(p, "%s is refused, and waits: %s\n", w.ID(), w.Why)
			continue
		}
		for _, change := range admission.Changes {
			p.aside(func() {
				fmt.Fprintf(a.err, "sublet: %s: took %s\n", r.Network, change)
			})
		}
		for _, d := range admission.Moves {
			p.aside(func() { fmt.Fprintf(a.err, "sublet: %s: to make room, %s\n", r.Network, disturbance(d)) })
		}
		if l := admission.Lease; l.Account != nil && l.Account.Hourly.Places > 0 {
			a.tellOf(p, "%s costs %s, its places included\n", l.ID(), price(l.Account))
		}
		admitted = append(admitted, admission.Lease)
	}
	admitted = append(admitted, there...)
	for i, l := range admitted {
		if o.then != nil {
			if err := a.brings(ctx, client, p, l, o); err != nil {
				return nil, err
			}
		}
		var err error
		if admitted[i], err = a.ready(ctx, client, p, l, o); err != nil {
			return admitted, err
		}
	}
	return admitted, nil
}

// brings does what is to be done to a network once it is there, or releases it. Its
// programs may have failed so far: they lacked what is brought.
func (a *app) brings(ctx context.Context, client *api.Client, p *progress, l vnet.Lease, o upOptions) error {
	p.say("building " + l.ID().String())
	waiting, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	now, err := a.waitReady(waiting, client, l.ID())
	if err != nil || !now.State.Holds() {
		return nil // which is told by whoever waits until it is ready
	}
	p.say("bringing files to " + l.ID().String())
	if err := o.then(ctx, client, now); err != nil {
		if failed := giveBack(client, []vnet.Lease{now}); failed != nil {
			return errors.Join(err, failed)
		}
		return fmt.Errorf("%w; %s is released again", err, l.ID())
	}
	return a.hearsOfPrograms(waiting, client, l.ID())
}

// hearsOfPrograms waits until the server has heard what became of programs that an agent
// has just started: it answers once it knows, and tells the server of failures at once.
func (a *app) hearsOfPrograms(ctx context.Context, client *api.Client, id vnet.LeaseID) error {
	const hears = 2 * time.Second
	for end := time.Now().Add(hears); time.Now().Before(end); {
		l, err := client.Lease(ctx, id)
		if err != nil || l.State != vnet.Running {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(hears / 10):
		}
	}
	return nil
}

// asAsked gives the lease that is in the way of a request, if it is what the
// request asks for.
func (a *app) asAsked(ctx context.Context, r vnet.Request, err error) (vnet.Lease, bool) {
	if !errors.Is(err, api.ErrConflict) {
		return vnet.Lease{}, false
	}
	client, l, err := a.lookUp(ctx, nameIn(r))
	if err != nil || over(l) != nil {
		return l, false
	}
	updated, err := client.Update(ctx, l, api.Update{Request: r, DryRun: true})
	return l, err == nil && len(updated.Changes) == 0
}

// tellOf prints a line, unless JSON or YAML is wanted, apart from the progress.
func (a *app) tellOf(p *progress, format string, args ...any) {
	if a.format == "table" {
		p.aside(func() { fmt.Fprint(a.out, harmless(fmt.Sprintf(format, args...))) })
	}
}

// refused writes the counter-offer of a refusal where the caller wants it.
func (a *app) refused(err error, path string) error {
	var rejection *vnet.Rejection
	if path == "" || !errors.As(err, &rejection) || rejection.Offer == nil {
		return err
	}
	if writeErr := a.offerTo(path, *rejection.Offer); writeErr != nil {
		return fmt.Errorf("%w (and the offer could not be written: %v)", err, writeErr)
	}
	return err
}

// offerTo writes a counter-offer to a file; -: to standard output.
func (a *app) offerTo(path string, offer vnet.Request) error {
	text, err := file.FormatRequest(offer)
	if err != nil {
		return err
	}
	if path == "-" {
		_, err := a.out.Write(text)
		return err
	}
	return write(path, text)
}

// giveBack releases leases of a command that is not going to be done, and
// waits until their names are free again.
func giveBack(client *api.Client, leases []vnet.Lease) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	var errs error
	for _, l := range leases {
		_, err := client.Release(ctx, l.ID())
		errs = errors.Join(errs, err)
	}
	for _, l := range leases {
		if errs == nil {
			errs = client.WaitGone(ctx, l.ID())
		}
	}
	return errs
}

// ready waits until a lease runs, if it is to run now: one that begins now may
// still be booked while others make room for it.
func (a *app) ready(ctx context.Context, client *api.Client, p *progress, l vnet.Lease, o upOptions) (vnet.Lease, error) {
	if l.State == vnet.Booked && time.Now().Before(l.Window.Start) {
		a.tellOf(p, "%s is booked from %s until %s\n", l.ID(), when(l.Window.Start), when(l.Window.End))
		return l, nil
	}
	if o.noWait {
		a.tellOf(p, "%s is admitted\n", l.ID())
		return l, nil
	}
	p.say("building " + l.ID().String())
	id := l.ID()
	waiting, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	l, err := a.waitReady(waiting, client, id)
	if err != nil {
		lacks := ""
		if o.from != "" && o.then != nil {
			lacks = ", and has nothing of what its nodes kept"
		}
		return l, fmt.Errorf("%s was admitted and is not ready yet%s (see sublet leases; release it with sublet down %s): %w", id, lacks, id, err)
	}
	if l.State == vnet.Paused {
		a.tellOf(p, "%s is paused: sublet resume %s lets it go on\n", l.ID(), l.Request.Network)
		return l, nil
	}
	if l.State != vnet.Running { // degraded too: something is not as it was asked for
		return l, fmt.Errorf("%s is %s: %s", id, l.State, l.Message)
	}
	a.tellOf(p, "%s is %s: %d nodes, %d links\n", l.ID(), l.State, len(l.Topology().All()), len(l.Topology().Links))
	return l, nil
}

// tellAfter is how long a network may take before what it waits for is told, and
// again, if it is something else, after twice as long each time.
const tellAfter = 5 * time.Second

// waitReady waits until a lease runs, failed or ended, and tells what holds it up.
func (a *app) waitReady(ctx context.Context, client *api.Client, id vnet.LeaseID) (vnet.Lease, error) {
	told := ""
	for wait := tellAfter; ; wait *= 2 {
		some, cancel := context.WithTimeout(ctx, wait)
		l, err := client.WaitReady(some, id)
		waited := some.Err() != nil
		cancel()
		if err == nil || !waited || ctx.Err() != nil {
			return l, err
		}
		if l, err = client.Lease(ctx, id); err == nil && l.Message != told && !api.Settled(l) {
			told = l.Message
			fmt.Fprintf(a.err, "sublet: %s: %s\n", id, told)
		}
	}
}
