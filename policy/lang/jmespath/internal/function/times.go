package function

import (
	"fmt"
	"strconv"
	"time"
)

// ParseTime reads a time in RFC 3339 form.
func ParseTime(text string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return t, fmt.Errorf("the time %q is not in RFC 3339 form, such as 2006-01-02T15:04:05Z", Shorten(text))
	}
	return t, nil
}

// times reads the arguments as times.
func (a Arguments) times() ([]time.Time, error) {
	var list []time.Time
	for i := range a {
		t, err := ParseTime(a.Text(i))
		if err != nil {
			return nil, fmt.Errorf("argument %d: %w", i+1, err)
		}
		list = append(list, t)
	}
	return list, nil
}

func (l Library) timeNow(Arguments) (any, error) {
	return l.Now().Format(time.RFC3339), nil
}

func (l Library) timeNowUTC(Arguments) (any, error) {
	return l.Now().UTC().Format(time.RFC3339), nil
}

// timeSince is time_since(layout, start, end): an empty layout means RFC 3339,
// an empty end means now.
func (l Library) timeSince(a Arguments) (any, error) {
	layout := a.Text(0)
	if layout == "" {
		layout = time.RFC3339
	}
	start, err := time.Parse(layout, a.Text(1))
	if err != nil {
		return nil, fmt.Errorf("the start %q: %w", Shorten(a.Text(1)), err)
	}
	end := l.Now()
	if a.Text(2) != "" {
		end, err = time.Parse(layout, a.Text(2))
		if err != nil {
			return nil, fmt.Errorf("the end %q: %w", Shorten(a.Text(2)), err)
		}
	}
	return end.Sub(start).String(), nil
}

// timeToCron returns minute, hour, day, month and weekday.
func timeToCron(a Arguments) (any, error) {
	t, err := ParseTime(a.Text(0))
	if err != nil {
		return nil, err
	}
	return fmt.Sprintf("%d %d %d %d %d", t.Minute(), t.Hour(), t.Day(), int(t.Month()), int(t.Weekday())), nil
}

func timeAdd(a Arguments) (any, error) {
	t, d, err := timeAndDuration(a)
	if err != nil {
		return nil, err
	}
	return t.Add(d).Format(time.RFC3339), nil
}

func timeTruncate(a Arguments) (any, error) {
	t, d, err := timeAndDuration(a)
	if err != nil {
		return nil, err
	}
	return t.Truncate(d).Format(time.RFC3339), nil
}

func timeAndDuration(a Arguments) (time.Time, time.Duration, error) {
	t, err := ParseTime(a.Text(0))
	if err != nil {
		return t, 0, err
	}
	d, err := time.ParseDuration(a.Text(1))
	if err != nil {
		return t, 0, fmt.Errorf("the duration %q: %w", Shorten(a.Text(1)), err)
	}
	return t, d, nil
}

// timeParse is time_parse(layout, text). A layout that is a number means
// seconds since 1970.
func timeParse(a Arguments) (any, error) {
	if _, err := strconv.ParseInt(a.Text(0), 10, 64); err == nil {
		epoch, err := strconv.ParseInt(a.Text(1), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("the time %q is no number of seconds", Shorten(a.Text(1)))
		}
		return time.Unix(epoch, 0).UTC().Format(time.RFC3339), nil
	}
	t, err := time.Parse(a.Text(0), a.Text(1))
	if err != nil {
		return nil, fmt.Errorf("the time %q: %w", Shorten(a.Text(1)), err)
	}
	return t.Format(time.RFC3339), nil
}

func timeUTC(a Arguments) (any, error) {
	t, err := ParseTime(a.Text(0))
	if err != nil {
		return nil, err
	}
	return t.UTC().Format(time.RFC3339), nil
}

func timeDiff(a Arguments) (any, error) {
	t, err := a.times()
	if err != nil {
		return nil, err
	}
	return t[1].Sub(t[0]).String(), nil
}

func timeBefore(a Arguments) (any, error) {
	t, err := a.times()
	if err != nil {
		return nil, err
	}
	return t[0].Before(t[1]), nil
}

func timeAfter(a Arguments) (any, error) {
	t, err := a.times()
	if err != nil {
		return nil, err
	}
	return t[0].After(t[1]), nil
}

func timeBetween(a Arguments) (any, error) {
	t, err := a.times()
	if err != nil {
		return nil, err
	}
	return t[0].After(t[1]) && t[0].Before(t[2]), nil
}
