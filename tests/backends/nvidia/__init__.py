"""PTX from lane programs: what it says, and whether ptxas takes it where there is one."""
