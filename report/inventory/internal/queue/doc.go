// Package queue holds keys in the order of their arrival, up to a bound.
package queue
