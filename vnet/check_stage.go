package vnet

// stages checks every stage against the topology the one before it left.
func (c *checker) stages(r Request) error {
	names := make(map[string]bool)
	before := r.Topology
	for i, s := range r.Stages {
		path := at("stages", i)
		if err := checkName(path+".name", s.Name); err != nil {
			return err
		}
		if names[s.Name] {
			return fieldf(path+".name", "there is a stage %q already: choose another name", s.Name)
		}
		names[s.Name] = true
		if err := r.checkAfter(path+".after", i); err != nil {
			return err
		}
		if err := c.stage(path, s, before); err != nil || len(c.problems) > 0 {
			return err
		}
		before = before.apply(s)
	}
	return nil
}

// checkAfter wants stages in order and inside the window.
func (r Request) checkAfter(path string, i int) error {
	s := r.Stages[i]
	if !s.Timed() {
		return nil
	}
	after, before := s.After, i-1
	for before >= 0 && !r.Stages[before].Timed() {
		before--
	}
	switch {
	case after < 0, after > MaxDuration:
		return fieldf(path, "%s is not between 0 and ten years: state the time since the start, such as 1h", after)
	case before >= 0 && after <= r.Stages[before].After:
		return fieldf(path, "%s is not after the stage before it (%s): write stages in order of time", FormatDuration(after), FormatDuration(r.Stages[before].After))
	case r.For > 0 && after >= r.For:
		return fieldf(path, "%s is not before the window ends (%s): begin the stage earlier or lease for longer", FormatDuration(after), FormatDuration(r.For))
	}
	return nil
}

// stage checks one stage that changes the topology before.
func (c *checker) stage(path string, s Stage, before Topology) error {
	if err := c.remove(path+".remove", s.Remove, before); err != nil {
		return err
	}
	left := before.apply(Stage{Remove: s.Remove})
	if c.appear(path+".add", s.Add, left); len(c.problems) > 0 {
		return nil // noted
	}
	after := left.apply(Stage{Add: s.Add}).names()
	for _, name := range sortedKeys(s.Links) {
		where := key(path+".links", name)
		if l, _ := before.Link(name); l.Chain != "" {
			continue // its chain is checked, and that no stage takes its ends away
		}
		if after[name] != "link" {
			return fieldf(where, "no link %q in this stage: name one that is there, or add it", name)
		}
		if err := checkBandwidth(where, s.Links[name]); err != nil {
			return err
		}
	}
	for _, name := range sortedKeys(s.Impair) {
		where := key(path+".links", name)
		if after[name] != "link" {
			return fieldf(where, "no link %q in this stage: name one that is there, or add it", name)
		}
		if err := checkImpairment(where+".impair", s.Impair[name]); err != nil {
			return err
		}
	}
	for _, name := range sortedKeys(s.Down) {
		if after[name] != "link" {
			return fieldf(key(path+".links", name), "no link %q in this stage: name one that is there, or add it", name)
		}
	}
	return nil
}

func (c *checker) remove(path string, remove []string, before Topology) error {
	present := before.names()
	for i, name := range remove {
		if present[name] == "" {
			return fieldf(at(path, i), "nothing (else) is named %q when the stage begins: remove what is there, once", name)
		}
		delete(present, name)
	}
	return nil
}
