"""The simulator of Pollux' artifact (OSDI 2021): fixed steps, measured profiles, and Tiresias, Optimus and Pollux as it has them."""
