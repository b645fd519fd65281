"""The results of a run: records, the register of figures, and statistics over samples. Reports read results with this
package alone, without the modules that execute runs."""
