// Package timeline counts events by interval, for the latest intervals.
package timeline
