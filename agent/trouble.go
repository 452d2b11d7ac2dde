package agent

import (
	"log/slog"
	"regexp"
)

// trouble is something that goes on being tried: it is told when it begins to
// fail, when it fails for another cause, and when it is over. It is not safe
// for concurrent use.
type trouble struct {
	log        *slog.Logger
	what, over string // messages
	cause      string // told last; "": it works
}

// ownPort is this end of a connection, in which each attempt differs.
var ownPort = regexp.MustCompile(`\S+->`)

func (t *trouble) note(err error) {
	cause := ""
	if err != nil {
		cause = ownPort.ReplaceAllString(err.Error(), "")
	}
	if cause == t.cause {
		return
	}
	if t.cause = cause; cause == "" {
		t.log.Info(t.over)
		return
	}
	t.log.Warn(t.what, "err", cause)
}
