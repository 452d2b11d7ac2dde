package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"sublet/lease/api"
	"sublet/vnet"
)

func (a *app) calendar() *cobra.Command {
	var from, until string
	c := a.list(&cobra.Command{
		Use:   "calendar [LINK|HOST...]",
		Short: "Show what is booked of the substrate's links and hosts over time",
		Long: `Show how much of each substrate link, way out (nat:NAME), exit (exit:NAME)
and place to join (join:NAME), per direction, of each device (device:NAME), and of the processors and memory of each host is booked to leases
over time: as a picture or, with --output json, every change. Whose leases they are is not shown.`,
		Example: "  sublet calendar\n  sublet calendar h1-h2 h1 --until 72h\n  sublet calendar -o json",
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.checkFormat(); err != nil {
				return err
			}
			w, err := calendarWindow(time.Now(), from, until)
			if err != nil {
				return err
			}
			answer, err := a.client().Calendar(c.Context(), w)
			if err != nil {
				return err
			}
			return a.printCalendar(answer, args)
		},
	})
	c.Flags().StringVar(&from, "from", "", "a time such as 2027-03-01T08:00:00Z, or how far from now such as 2h (default: now)")
	c.Flags().StringVar(&until, "until", "", "the same, for the end (default: a day later)")
	return c
}

// calendarWindow reads both ends.
func calendarWindow(now time.Time, from, until string) (w vnet.Window, err error) {
	now = now.UTC().Truncate(time.Second)
	if w.Start, err = moment("--from", from, now, now); err != nil {
		return w, err
	}
	if w.End, err = moment("--until", until, now, w.Start.Add(24*time.Hour)); err != nil {
		return w, err
	}
	if !w.End.After(w.Start) {
		return w, badInput{fmt.Errorf("--until %s is not after --from %s", w.End.Format(time.RFC3339), w.Start.Format(time.RFC3339))}
	}
	return w, nil
}

// moment reads a time, or a distance from now.
func moment(flag, text string, now, otherwise time.Time) (time.Time, error) {
	if text == "" {
		return otherwise, nil
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t.UTC(), nil
	}
	d, err := vnet.ParseDuration(text)
	if err != nil {
		return otherwise, badInput{fmt.Errorf("%s %q is neither a time such as 2027-03-01T08:00:00Z nor a duration such as 2h", flag, text)}
	}
	return now.Add(d), nil
}

func (a *app) printCalendar(c api.Calendar, names []string) error {
	for _, name := range names {
		of := func(l vnet.Load) bool { return l.Link == name }
		if !slices.ContainsFunc(c.Loads, of) && !slices.ContainsFunc(c.Outside, of) &&
			!slices.ContainsFunc(c.Hosts, func(l vnet.HostLoad) bool { return string(l.Host) == name }) {
			return badInput{fmt.Errorf("no substrate link or host %q: see sublet links and sublet hosts", name)}
		}
	}
	if len(names) > 0 {
		other := func(l vnet.Load) bool { return !slices.Contains(names, l.Link) }
		c.Loads, c.Outside = slices.DeleteFunc(c.Loads, other), slices.DeleteFunc(c.Outside, other)
		c.Hosts = slices.DeleteFunc(c.Hosts, func(l vnet.HostLoad) bool { return !slices.Contains(names, string(l.Host)) })
	}
	if a.format != "table" {
		return a.print(c, "", nil)
	}
	p := picture{window: c.Window}
	for _, l := range slices.Concat(c.Loads, c.Outside) {
		p.load(l)
	}
	for _, l := range c.Hosts {
		p.host(l)
	}
	text := p.String()
	for _, m := range c.Maintenance {
		if len(names) == 0 || slices.Contains(names, string(m.Host)+m.Link) {
			text += m.String() + "\n"
		}
	}
	_, err := fmt.Fprint(a.out, text)
	return err
}
