"""`python -m tvm.driver.tvmc`."""

from tvm.driver.tvmc.main import main

if __name__ == "__main__":
    main()
